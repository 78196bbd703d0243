"""Functions that write files and folders so that they appear whole or not at all.

A file is written as a hidden draft beside its place, then renamed into it; a folder likewise. A process that is killed
in between leaves the draft, and the next run removes it. Three things distinguish such a draft from any other file: its
name, which no user would choose; its lock, which the system releases when the process that writes it ends in whatever
way; and, on a network drive where machines may not see each other's locks, the machine in its name.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from repeat_xai.errors import OutputError, reason
from repeat_xai.files.reading import expect_regular

MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
"""Eight digits that stand for the name of this machine."""
DRAFT = re.compile(r"\.repeat-xai-draft-(?P<machine>[0-9a-f]{8})-[a-z0-9_]{8}(\..*)?", re.DOTALL)
"""Pattern of a draft's name: the machine that writes it, and what `tempfile` adds so that no two names are the same."""
MAX_DRAFT_AGE = 24 * 3600.0
"""Seconds after which another machine's draft, which takes seconds to write, is certainly left over."""


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that takes the place of `path` when the block ends well, and is removed when it does not.

    An `OSError` in the block is raised as an OutputError that says which file cannot be written, and why.
    """
    expect_regular(path)
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = _draft(lambda prefix: tempfile.mkstemp(prefix=prefix, suffix=path.suffix, dir=path.parent))
    try:
        with _naming(path):
            yield draft
            draft.chmod(0o666 & ~_umask())
            draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink()
        os.close(descriptor)


@contextmanager
def writing_folder(path: Path, *, drafts: Path) -> Iterator[Path]:
    """Yield an empty folder inside `drafts` that takes the place of the folder `path` when the block ends well."""
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = _draft(lambda prefix: _make_folder(prefix, drafts))
    try:
        with _naming(path):
            yield draft
            draft.chmod(0o777 & ~_umask())
            if path.exists():
                shutil.rmtree(path)
            draft.replace(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(descriptor)


def remove_old_drafts(folder: Path) -> None:
    """Remove the drafts that killed runs have left in this folder, but none that is still being written.

    A folder that is missing or cannot be read is left as it is.
    """
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if DRAFT.fullmatch(path.name)]:
            with suppress(OSError):
                if _left_over(path):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def remove(path: Path) -> None:
    """Remove a file; do nothing if there is none."""
    with _naming(path):
        path.unlink(missing_ok=True)


def _draft(make: Callable[[str], tuple[int, str]]) -> tuple[int, Path]:
    """Create a draft by `make`, which is given the prefix of its name; return the open draft, locked, and its path."""
    while True:
        descriptor, name = make(f".repeat-xai-draft-{MACHINE}-")
        if _lock(descriptor) is not False and Path(name).exists():
            return descriptor, Path(name)
        os.close(descriptor)  # another run locked it first, to remove it


def _make_folder(prefix: str, parent: Path) -> tuple[int, str]:
    """Make a folder with a new name; return its open descriptor and its path."""
    while True:
        name = tempfile.mkdtemp(prefix=prefix, dir=parent)
        with suppress(FileNotFoundError):  # another run may remove it before it is open and locked
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), name


def _left_over(draft: Path) -> bool:
    """Return whether a draft is no longer being written by any process."""
    status, name = draft.lstat(), DRAFT.fullmatch(draft.name)
    of_another_machine = name is None or name["machine"] != MACHINE
    is_folder = stat.S_ISDIR(status.st_mode)
    of_this_package = not draft.suffix if is_folder else stat.S_ISREG(status.st_mode)
    if not of_this_package or (of_another_machine and time.time() - status.st_mtime < MAX_DRAFT_AGE):
        return False
    # On a network drive, a file can only be locked if it is open for writing; a folder cannot be opened for writing.
    mode = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_WRONLY
    descriptor = os.open(draft, mode | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return _lock(descriptor) is True
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Lock a file; return True on success, False if another process holds the lock, None where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raise an OutputError that names the file in place of an OSError in this block."""
    try:
        yield
    except OSError as error:
        why = error.strerror or reason(error)
        raise OutputError(f"{path}: cannot be written ({why}); choose another folder") from error


def _umask() -> int:
    """Return the permissions withheld from new files; the system has no call that only reads them."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
