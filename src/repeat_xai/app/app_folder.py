"""The folder where the app keeps what it was given and has made, until it ends."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "repeat-xai-"
LOCK = "lock"
"""A file that a running app holds a lock on: the system lets go of it however the app ends."""


@contextmanager
def home() -> Iterator[Path]:
    """Make a folder under a name that cannot be guessed, for as long as the block runs.

    Folders of apps that were killed before they could remove their own are removed first.
    """
    place = Path(tempfile.gettempdir())
    for left in place.glob(f"{PREFIX}*"):
        with suppress(OSError), _held(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = place / f"{PREFIX}{secrets.token_hex(16)}"
    folder.mkdir(mode=0o700)
    (folder / LOCK).touch()
    with _held(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder of this user; an OSError says that it is held already, or that there is none."""
    if folder.lstat().st_uid != os.getuid():
        raise PermissionError(folder)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
