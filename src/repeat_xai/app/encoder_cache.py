"""Encoders by name, loaded once and shared by all who ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from repeat_xai.app.encoder_process import PAUSE, load_apart
from repeat_xai.experiments.settings import Network
from repeat_xai.types import Encoder

KEPT = 4
"""Encoders that stay loaded beside those named when the app was started."""


@final
@dataclass(frozen=True, eq=False)
class Shared:
    """An encoder, and a lock for what only one may do with it at a time."""

    encoder: Encoder
    lock: threading.Lock = field(default_factory=threading.Lock)


@final
class Shelf:
    """Where loaded encoders are; the one that was not asked for longest makes room for a new one."""

    def __init__(self, *, device: str = "auto", kept: int = KEPT) -> None:
        self.device, self.kept = device, kept
        self._found: dict[Network, Shared] = {}
        self._loading: dict[Network, threading.Lock] = {}
        self._lock = threading.Lock()

    def load(self, network: Network) -> None:
        """Load an encoder in this process, before anybody asks for one."""
        self._keep(network, network.load(self.device))

    def take(self, network: Network, still_wanted: Callable[[], None]) -> Shared:
        """Return the encoder of that name, loaded now if need be; `still_wanted` gives up by raising an exception."""
        with self._lock:
            alone = self._loading.setdefault(network, threading.Lock())
        while not alone.acquire(timeout=PAUSE):
            still_wanted()
        try:
            return self._known(network) or self._keep(network, load_apart(network, self.device, still_wanted))
        finally:
            alone.release()

    def _known(self, network: Network) -> Shared | None:
        with self._lock:
            if network in self._found:
                self._found[network] = self._found.pop(network)
            return self._found.get(network)

    def _keep(self, network: Network, encoder: Encoder) -> Shared:
        with self._lock:
            self._found[network] = made = Shared(encoder)
            for oldest in list(self._found)[: -self.kept]:
                del self._found[oldest]
                self._loading.pop(oldest, None)
        return made
