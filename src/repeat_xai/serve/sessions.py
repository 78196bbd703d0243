"""Who is here: what each has given and asked for, in a folder that goes when they go."""

from __future__ import annotations

import secrets
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, final

from repeat_xai.serve.job import Job
from repeat_xai.serve.photo import Given


@final
@dataclass(eq=False)
class Session:
    """One open page."""

    folder: Path
    """Its name cannot be guessed."""
    given: Given | None = None
    job: Job | None = None
    results: Path | None = None
    """Where the job's pages and files go."""
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    """For what is written while the page may be closed."""

    def fresh(self, kind: Literal["photo", "results"]) -> Path:
        """A new folder; those of the same kind before it go, unless work is under way that may need them."""
        if self.job is None or self.job.state.end is not None:
            for old in self.folder.glob(f"{kind}-*"):
                shutil.rmtree(old, ignore_errors=True)
        folder = self.folder / f"{kind}-{secrets.token_hex(4)}"
        folder.mkdir(parents=True)
        return folder

    def end(self) -> None:
        """Stop its work and leave nothing behind."""
        if self.job is not None:
            self.job.cancel()
        with self.lock:
            self.ended = True
            shutil.rmtree(self.folder, ignore_errors=True)


@final
class Sessions:
    """Every open page by its key."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def of(self, key: str) -> Session:
        """The session of that key, begun now if it is new."""
        with self._lock:
            if key not in self._open:
                self._open[key] = Session(self.root / secrets.token_urlsafe(16))
            return self._open[key]

    def end(self, key: str) -> None:
        """Its page was closed."""
        with self._lock:
            session = self._open.pop(key, None)
        if session is not None:
            session.end()

    def end_all(self) -> None:
        """The server stops."""
        for key in list(self._open):
            self.end(key)
