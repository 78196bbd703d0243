"""Files: they are written whole or not at all, and read without waiting and within limits."""
