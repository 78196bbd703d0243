"""Encoders by name, loaded once and shared by all who ask."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import final

from repeat_xai.experiment.setting import Network
from repeat_xai.importance.labelfree import ALONE
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
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def take(self, network: Network) -> Shared:
        """The encoder of that name, loaded now if need be."""
        if (found := self._known(network)) is not None:
            return found
        drawn = not network.name.startswith("onnx:")  # filled from torch's global generator before its weights are
        with ALONE if drawn else self._reading:
            if (found := self._known(network)) is not None:
                return found
            made = Shared(network.load(self.device))
        with self._lock:
            self._found[network] = made
            for oldest in list(self._found)[: -self.kept]:
                del self._found[oldest]
        return made

    def _known(self, network: Network) -> Shared | None:
        with self._lock:
            if network in self._found:
                self._found[network] = self._found.pop(network)
            return self._found.get(network)
