"""Results on disk: rows of numbers, and maps."""

from repeat_xai.store.maps import MapStore, NoMapsError, StoredMaps
from repeat_xai.store.row import Row
from repeat_xai.store.rows import Store

__all__ = ["MapStore", "NoMapsError", "Row", "Store", "StoredMaps"]
