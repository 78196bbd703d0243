"""Photos that were uploaded and wait for their page to take them."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple, final

from repeat_xai.app.request_body import RefusedError
from repeat_xai.errors import ImageError

MAX_CONCURRENT_UPLOADS = 16
"""Uploads under way at the same time, over all browsers."""
MAX_CONCURRENT_UPLOADS_PER_BROWSER = 4
"""Uploads of one browser under way at the same time."""
MAX_WAITING_UPLOADS = 4
"""Photos that may wait for one browser's pages. When a further one arrives, the oldest is removed."""
MAX_WAITING_SECONDS = 600.0
"""Time after which a photo that no page has taken is removed."""
MAX_NAME_BYTES = 120
"""Bytes of a photo's name that are kept, counted from its end. File systems limit bytes rather than letters."""


class WaitingUpload(NamedTuple):
    """A photo that no page has taken yet."""

    browser: str
    path: Path
    arrived: float
    """Time at which it arrived, by the monotonic clock."""


@final
class Uploads:
    """Uploaded photos by a key that cannot be guessed. Each is taken once, and only by the browser that sent it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: dict[str, WaitingUpload] = {}
        self._under_way: Counter[str] = Counter()
        self._lock = threading.Lock()

    async def receive(self, browser: str, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Write a photo to a folder of its own and return its key. A photo that arrives in part is removed."""
        all_places_taken = self._under_way.total() >= MAX_CONCURRENT_UPLOADS
        if all_places_taken or self._under_way[browser] >= MAX_CONCURRENT_UPLOADS_PER_BROWSER:
            raise RefusedError(503, "too many photos are being uploaded; try again in a moment")
        key = secrets.token_urlsafe(24)
        path = self.folder / key / name
        self._under_way[browser] += 1
        try:
            path.parent.mkdir(parents=True)
            with path.open("xb") as file:
                async for chunk in chunks:
                    file.write(chunk)
        except OSError as error:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise RefusedError(507, f"nothing can be written on the server ({error.strerror})") from error
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
        finally:
            self._under_way -= Counter([browser])  # this also forgets a browser that has no more of them
        with self._lock:
            self._waiting[key] = WaitingUpload(browser, path, time.monotonic())
            keys_of_browser = [key for key, upload in self._waiting.items() if upload.browser == browser]
        for old_key in keys_of_browser[:-MAX_WAITING_UPLOADS]:
            self._remove(old_key)
        return key

    def take(self, browser: str, key: object) -> Path:
        """Return the path of the photo with that key, for the caller to move it away; no key is valid twice."""
        with self._lock:
            upload = self._waiting.get(key) if isinstance(key, str) else None
            if upload is None or upload.browser != browser:
                raise ImageError("this photo did not arrive; upload it again")
            assert isinstance(key, str)
            return self._waiting.pop(key).path

    def remove_old(self) -> None:
        """Remove photos that have waited too long."""
        with self._lock:
            oldest_allowed = time.monotonic() - MAX_WAITING_SECONDS
            old_keys = [key for key, upload in self._waiting.items() if upload.arrived < oldest_allowed]
        for key in old_keys:
            self._remove(key)

    def _remove(self, key: str) -> None:
        with self._lock:
            self._waiting.pop(key, None)
        shutil.rmtree(self.folder / key, ignore_errors=True)


def safe_file_name(text: str) -> str:
    r"""Return a name for a photo's file that is not a path and contains only printable characters.

    >>> safe_file_name("../../etc/my cat.jpg"), safe_file_name("C:\\a\\b.png")
    ('my cat.jpg', 'b.png')
    >>> safe_file_name(".."), safe_file_name("a\nb.png")
    ('photo', 'a b.png')
    """
    last = re.split(r"[/\\]", text)[-1]
    printable = "".join(letter if letter.isprintable() else " " for letter in last).strip().lstrip(".")
    return printable.encode()[-MAX_NAME_BYTES:].decode(errors="ignore").strip() or "photo"
