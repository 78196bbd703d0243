"""Results on disk: rows of numbers, and maps."""

from repeat_xai.store.maps import MapStore, NoMapsError, StoredMaps
from repeat_xai.store.row import Row
from repeat_xai.store.rows import Store
from repeat_xai.store.schema import DamagedError

__all__ = ["DamagedError", "MapStore", "NoMapsError", "Row", "Store", "StoredMaps"]
