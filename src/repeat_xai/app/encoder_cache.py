"""A cache of loaded encoders, shared by all users of the app."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from repeat_xai.app.encoder_process import POLL_SECONDS, load_in_process
from repeat_xai.experiments.settings import Network
from repeat_xai.types import Encoder

EXTRA_ENCODERS = 4
"""Encoders that stay loaded beside those named when the app was started."""


@final
@dataclass(frozen=True, eq=False)
class CachedEncoder:
    """An encoder, with a lock for steps that only one job may take at a time."""

    encoder: Encoder
    lock: threading.Lock = field(default_factory=threading.Lock)


@final
class EncoderCache:
    """Loaded encoders by name. When there are too many, the one that was used least recently is dropped."""

    def __init__(self, *, device: str = "auto", capacity: int = EXTRA_ENCODERS) -> None:
        self.device, self.capacity = device, capacity
        self._encoders: dict[Network, CachedEncoder] = {}
        self._loading: dict[Network, threading.Lock] = {}
        self._lock = threading.Lock()

    def preload(self, network: Network) -> None:
        """Load an encoder in this process, before the app is served."""
        self._store(network, network.load(self.device))

    def get(self, network: Network, check_cancelled: Callable[[], None]) -> CachedEncoder:
        """Return an encoder, loading it first if necessary.

        `check_cancelled` is called at intervals while this waits, and ends the wait by raising an exception.
        """
        with self._lock:
            loading = self._loading.setdefault(network, threading.Lock())
        while not loading.acquire(timeout=POLL_SECONDS):
            check_cancelled()
        try:
            return self._find(network) or self._store(network, load_in_process(network, self.device, check_cancelled))
        finally:
            loading.release()

    def _find(self, network: Network) -> CachedEncoder | None:
        with self._lock:
            if network in self._encoders:
                self._encoders[network] = self._encoders.pop(network)  # a dict keeps order: now it was used last
            return self._encoders.get(network)

    def _store(self, network: Network, encoder: Encoder) -> CachedEncoder:
        with self._lock:
            self._encoders[network] = cached = CachedEncoder(encoder)
            for least_recent in list(self._encoders)[: -self.capacity]:
                del self._encoders[least_recent]
                self._loading.pop(least_recent, None)
        return cached
