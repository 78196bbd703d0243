"""Label-free attribution methods, one per file, each of which may serve as the base of REPEAT or of a spread.

A file that defines `NAMED`, a dictionary from names to methods, adds these names to every command, list and page.
"""
