"""Who is here: what each has given and asked for, in folders that go when they go."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from repeat_xai.app.job import Job
from repeat_xai.app.photos import Given
from repeat_xai.errors import ConfigurationError, OutputError

KEY = re.compile(r"[\w-]{6,64}", re.ASCII)
"""How Gradio names the sessions of open pages."""
MOST_OPEN = 500
"""Open pages, of all visitors."""
IDLE = 2 * 60 * 60
"""Seconds without use after which a session ends, though nobody said that its page was closed."""
PATROL = 60
"""Seconds between two looks for such sessions."""


@final
@dataclass(eq=False)
class Session:
    """One open page."""

    visitor: str
    """The browser that has opened it."""
    photos: Path
    """Where what is uploaded lies, and nobody is served from."""
    results: Path
    """Where its pages and files are served from, under a name that cannot be guessed."""
    given: Given | None = None
    job: Job | None = None
    written: Path | None = None
    """Where the job's pages and files go."""
    ended: bool = False
    used: float = 0.0
    """When it was, last."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """For what is written while the page may be closed."""

    def fresh(self, within: Path) -> Path:
        """Make a new folder; those before it go, but for what work under way needs."""
        with self.lock:
            if self.ended:
                raise OutputError("this page was closed; load it again")
            under_way = self.job is not None and self.job.state.end is None
            needed = (self.job.given.path.parent, self.written) if self.job and under_way else ()
            for earlier in within.glob("*"):
                if earlier not in needed:
                    shutil.rmtree(earlier, ignore_errors=True)
            folder = within / secrets.token_hex(4)
            try:
                folder.mkdir(parents=True)
            except OSError as error:
                raise OutputError(f"nothing can be written on the server ({error.strerror})") from error
        return folder

    def end(self) -> None:
        """Stop its work and leave nothing behind."""
        if self.job is not None:
            self.job.cancel()
        with self.lock:
            self.ended = True
            for folder in (self.photos, self.results):
                shutil.rmtree(folder, ignore_errors=True)


@final
class Sessions:
    """Every open page by its key."""

    def __init__(self, home: Path) -> None:
        self.photos, self.results = home / "photos", home / "results"
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def join(self, key: str, visitor: str) -> None:
        """Begin the session of that key if it is new; refuse one that another visitor has begun."""
        if not KEY.fullmatch(key):
            raise ConfigurationError("a page is known by 6 to 64 letters and digits; load it again")
        with self._lock:
            if key not in self._open:
                if len(self._open) >= MOST_OPEN:
                    raise ConfigurationError("too many pages are open here; close one, or try again later")
                name = secrets.token_urlsafe(16)
                self._open[key] = Session(visitor, self.photos / name, self.results / name)
            session = self._open[key]
            if session.visitor != visitor:
                raise ConfigurationError("this page was opened by another browser; load it again")
            session.used = time.monotonic()

    def of(self, key: str) -> Session:
        """Return the session of that key, which is in use now."""
        session = self.known(key)
        if session is None:
            raise OutputError("this page was closed; load it again")
        session.used = time.monotonic()
        return session

    def shows(self, name: str, visitor: str) -> bool:
        """Tell whether the results served under that name are those of one of the visitor's own pages."""
        with self._lock:
            return any(one.results.name == name and one.visitor == visitor for one in self._open.values())

    def known(self, key: str) -> Session | None:
        """The session of that key, if it has begun and not ended."""
        with self._lock:
            return self._open.get(key)

    def end(self, key: str) -> None:
        """Its page was closed."""
        with self._lock:
            session = self._open.pop(key, None)
        if session is not None:
            session.end()

    def end_idle(self) -> None:
        """What was not used for long ends."""
        with self._lock:
            idle = [key for key, one in self._open.items() if time.monotonic() - one.used > IDLE]
        for key in idle:
            self.end(key)

    @contextmanager
    def ageing(self, *others: Callable[[], None]) -> Iterator[None]:
        """While the block runs, sessions left alone end, and the others are called as often; after it, all end."""
        over = threading.Event()

        def patrol() -> None:
            while not over.wait(PATROL):
                for look in (self.end_idle, *others):
                    look()

        watch = threading.Thread(target=patrol, daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()
            for key in list(self._open):
                self.end(key)
