"""Encoders turn images into codes. One is loaded by its name or from a file, or made from a torch module."""
