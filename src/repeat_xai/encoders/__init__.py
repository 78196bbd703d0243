"""Encoders turn images into codes; each is loaded by its name, from a file, or made from a module."""
