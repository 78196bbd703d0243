"""A cache of loaded encoders, shared by all users of the app."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from repeat_xai.app.encoder_process import POLL_SECONDS, load_in_process
from repeat_xai.experiments.settings import EncoderSpec
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
        self._encoders: dict[EncoderSpec, CachedEncoder] = {}
        self._loading: dict[EncoderSpec, threading.Lock] = {}
        self._lock = threading.Lock()

    def preload(self, spec: EncoderSpec) -> None:
        """Load an encoder in this process, before the app is served."""
        self._store(spec, spec.load(self.device))

    def get(self, spec: EncoderSpec, check_cancelled: Callable[[], None]) -> CachedEncoder:
        """Return an encoder, loading it first if necessary.

        `check_cancelled` is called at intervals while this waits, and ends the wait by raising an exception.
        """
        with self._lock:
            loading = self._loading.setdefault(spec, threading.Lock())
        while not loading.acquire(timeout=POLL_SECONDS):
            check_cancelled()
        try:
            return self._find(spec) or self._store(spec, load_in_process(spec, self.device, check_cancelled))
        finally:
            loading.release()

    def _find(self, spec: EncoderSpec) -> CachedEncoder | None:
        with self._lock:
            if spec in self._encoders:
                self._encoders[spec] = self._encoders.pop(spec)  # a dict keeps order: now it was used last
            return self._encoders.get(spec)

    def _store(self, spec: EncoderSpec, encoder: Encoder) -> CachedEncoder:
        with self._lock:
            self._encoders[spec] = cached = CachedEncoder(encoder)
            for least_recent in list(self._encoders)[: -self.capacity]:
                del self._encoders[least_recent]
                self._loading.pop(least_recent, None)
        return cached
