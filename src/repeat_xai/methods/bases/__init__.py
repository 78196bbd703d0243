"""Label-free attribution methods, one per file. Each may serve as the base of REPEAT or of a spread."""
