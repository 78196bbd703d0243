"""Photos that have arrived and wait for the page to ask for them."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple, final

from repeat_xai.app.request_body import RefusedError
from repeat_xai.errors import ImageError

MOST_AT_ONCE = 16
"""Uploads under way at the same time, of all browsers."""
MOST_WAITING = 4
"""Photos that wait for one browser's pages, those under way included: an older one makes room."""
PATIENCE = 600.0
"""Seconds that a photo waits."""
MOST_LETTERS = 120
"""Letters of a photo's name that are kept."""


class Waiting(NamedTuple):
    """A photo, whose it is, and since when it waits."""

    visitor: str
    path: Path
    since: float


@final
class Uploads:
    """Photos by a key that cannot be guessed: each is taken once, and by the browser that sent it alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: dict[str, Waiting] = {}
        self._under_way = 0
        self._lock = threading.Lock()

    async def receive(self, visitor: str, name: str, arriving: AsyncIterator[bytes]) -> str:
        """Write what arrives to a folder of its own, and return the photo's key; what does not arrive whole goes."""
        if self._under_way >= MOST_AT_ONCE:
            raise RefusedError(503, "too many photos are being uploaded; try again in a moment")
        key = secrets.token_urlsafe(24)
        path = self.folder / key / name
        self._under_way += 1
        try:
            path.parent.mkdir(parents=True)
            with path.open("xb") as file:
                async for part in arriving:
                    file.write(part)
        except OSError as error:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise RefusedError(507, f"nothing can be written on the server ({error.strerror})") from error
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
        finally:
            self._under_way -= 1
        with self._lock:
            self._waiting[key] = Waiting(visitor, path, time.monotonic())
            own = [key for key, photo in self._waiting.items() if photo.visitor == visitor]
        for oldest in own[:-MOST_WAITING]:
            self._forget(oldest)
        return key

    def take(self, visitor: str, key: object) -> Path:
        """Return where the photo of that key lies, for its browser to move away."""
        with self._lock:
            photo = self._waiting.get(key) if isinstance(key, str) else None
            if photo is None or photo.visitor != visitor:
                raise ImageError("this photo did not arrive; upload it again")
            assert isinstance(key, str)
            return self._waiting.pop(key).path

    def forget_old(self) -> None:
        """Remove photos that no page has asked for."""
        with self._lock:
            old = [key for key, photo in self._waiting.items() if time.monotonic() - photo.since > PATIENCE]
        for key in old:
            self._forget(key)

    def _forget(self, key: str) -> None:
        with self._lock:
            self._waiting.pop(key, None)
        shutil.rmtree(self.folder / key, ignore_errors=True)


def file_name(text: str) -> str:
    r"""Return a name for a photo's file that is no path and holds nothing but printable letters.

    >>> file_name("../../etc/my cat.jpg"), file_name("C:\\a\\b.png"), file_name(".."), file_name("a\nb.png")
    ('my cat.jpg', 'b.png', 'photo', 'a b.png')
    """
    last = re.split(r"[/\\]", text)[-1]
    printable = "".join(letter if letter.isprintable() else " " for letter in last).strip()
    return printable.lstrip(".")[-MOST_LETTERS:].strip() or "photo"
