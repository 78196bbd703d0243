"""The temporary folder of a running app, which holds uploaded photos and results until the app ends."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER_PREFIX = "repeat-xai-"
LOCK_FILE = "lock"
"""Name of the file that a running app keeps locked. The system releases the lock however the app ends."""


@contextmanager
def temporary_app_folder() -> Iterator[Path]:
    """Create a folder with a name that cannot be guessed, and remove it when the block ends.

    Folders that were left behind by apps that were killed are removed first.
    """
    parent = Path(tempfile.gettempdir())
    for abandoned in parent.glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError), _locked(abandoned):
            shutil.rmtree(abandoned, ignore_errors=True)
    folder = parent / f"{FOLDER_PREFIX}{secrets.token_hex(16)}"
    folder.mkdir(mode=0o700)
    (folder / LOCK_FILE).touch()
    with _locked(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder of this user. An OSError means that another app holds it, or that it has no lock."""
    if folder.lstat().st_uid != os.getuid():
        raise PermissionError(folder)
    # Anybody may create files in the system's temporary folder: a link or a pipe in place of the lock is not followed.
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
