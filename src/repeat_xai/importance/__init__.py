"""Base importance, one method a file."""
