"""The store keeps results in a folder or behind a URL: rows of numbers in Parquet files, and maps in Zarr arrays."""
