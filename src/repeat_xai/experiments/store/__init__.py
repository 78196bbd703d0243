"""The store keeps results on a disk or behind a URL: rows of numbers, and maps."""
