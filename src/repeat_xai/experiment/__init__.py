"""Many images under many settings: rows, and tables made of them."""
