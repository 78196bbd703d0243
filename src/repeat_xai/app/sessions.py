"""The open pages of the app, each a session with its photo, its job and its folders."""

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
from repeat_xai.app.photos import ChosenPhoto
from repeat_xai.errors import ConfigurationError, OutputError

SESSION_KEY = re.compile(r"[\w-]{6,64}", re.ASCII)
"""Form of the keys by which Gradio's pages name their sessions."""
MAX_SESSIONS = 500
"""Pages that may be open at the same time, over all browsers."""
MAX_SESSIONS_PER_BROWSER = 50
"""Pages of one browser that may be open at the same time."""
MAX_IDLE_SECONDS = 2 * 60 * 60
"""Time without use after which a session ends, even if the browser never reported that its page was closed."""
CLEANUP_SECONDS = 60
"""Time between two searches for sessions to end."""


@final
@dataclass(eq=False)
class Session:
    """The state of one page that is open in a browser."""

    browser: str
    """Identity of the browser that has opened the page."""
    photo_folder: Path
    """Folder of uploaded photos, which is never served."""
    result_folder: Path
    """Folder from which results are served, under a name that cannot be guessed."""
    photo: ChosenPhoto | None = None
    job: Job | None = None
    job_folder: Path | None = None
    """Folder inside `result_folder` for the job's pages and files."""
    ended: bool = False
    last_used: float = 0.0
    """Time of the last use, by the monotonic clock."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while files are written, because the page may be closed meanwhile."""

    def new_folder(self, parent: Path) -> Path:
        """Create a folder inside `parent` and remove the earlier ones there, except those a running job needs."""
        with self.lock:
            if self.ended:
                raise OutputError("this page was closed; load it again")
            running = self.job is not None and self.job.state.end is None
            needed = (self.job.photo.path.parent, self.job_folder) if self.job and running else ()
            for earlier in parent.glob("*"):
                if earlier not in needed:
                    shutil.rmtree(earlier, ignore_errors=True)
            folder = parent / secrets.token_hex(4)
            try:
                folder.mkdir(parents=True)
            except OSError as error:
                raise OutputError(f"nothing can be written on the server ({error.strerror})") from error
        return folder

    def end(self) -> None:
        """Cancel the job and remove all files of this session."""
        if self.job is not None:
            self.job.cancel()
        with self.lock:
            self.ended = True
            for folder in (self.photo_folder, self.result_folder):
                shutil.rmtree(folder, ignore_errors=True)


@final
class Sessions:
    """All sessions by the key that the page names."""

    def __init__(self, app_folder: Path) -> None:
        self.photo_folder, self.result_folder = app_folder / "photos", app_folder / "results"
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def join(self, key: str, browser: str) -> None:
        """Begin the session with that key if there is none yet. Refuse a session of another browser."""
        if not SESSION_KEY.fullmatch(key):
            raise ConfigurationError("the key of a page has 6 to 64 letters and digits; load the page again")
        with self._lock:
            if key not in self._sessions:
                own = sum(session.browser == browser for session in self._sessions.values())
                if len(self._sessions) >= MAX_SESSIONS or own >= MAX_SESSIONS_PER_BROWSER:
                    raise ConfigurationError("too many pages are open here; close one, or try again later")
                name = secrets.token_urlsafe(16)
                self._sessions[key] = Session(browser, self.photo_folder / name, self.result_folder / name)
            session = self._sessions[key]
            if session.browser != browser:
                raise ConfigurationError("this page was opened by another browser; load it again")
            session.last_used = time.monotonic()

    def get(self, key: str) -> Session:
        """Return the session with that key and note that it is in use."""
        session = self.find(key)
        if session is None:
            raise OutputError("this page was closed; load it again")
        session.last_used = time.monotonic()
        return session

    def find(self, key: str) -> Session | None:
        """Return the session with that key, or None if it has not begun or has ended."""
        with self._lock:
            return self._sessions.get(key)

    def owns_results(self, browser: str, folder_name: str) -> bool:
        """Tell whether the result folder of that name belongs to a session of that browser."""
        with self._lock:
            own = (session for session in self._sessions.values() if session.browser == browser)
            return any(session.result_folder.name == folder_name for session in own)

    def end(self, key: str) -> None:
        """End the session with that key, if there is one."""
        with self._lock:
            session = self._sessions.pop(key, None)
        if session is not None:
            session.end()

    def cancel_jobs(self) -> None:
        """Cancel the job of every session."""
        with self._lock:
            jobs = [session.job for session in self._sessions.values() if session.job is not None]
        for job in jobs:
            job.cancel()

    def end_idle(self) -> None:
        """End every session that was not used for a long time."""
        with self._lock:
            oldest_allowed = time.monotonic() - MAX_IDLE_SECONDS
            idle_keys = [key for key, session in self._sessions.items() if session.last_used < oldest_allowed]
        for key in idle_keys:
            self.end(key)

    @contextmanager
    def regular_cleanup(self, *further_cleanups: Callable[[], None]) -> Iterator[None]:
        """End idle sessions at intervals while the block runs, and all sessions after it.

        The further functions are called at the same intervals.
        """
        stopped = threading.Event()

        def clean_up() -> None:
            while not stopped.wait(CLEANUP_SECONDS):
                for cleanup in (self.end_idle, *further_cleanups):
                    cleanup()

        thread = threading.Thread(target=clean_up, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()
            for key in list(self._sessions):
                self.end(key)
