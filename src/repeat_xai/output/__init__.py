"""Results for people to read: figures, pages, tables and folders of results."""
