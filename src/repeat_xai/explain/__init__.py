"""Importance with uncertainty, one method a file."""
