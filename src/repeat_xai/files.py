"""Files that appear whole or not at all, are read without waiting, and leave no drafts behind.

A file is written as a hidden draft beside its place, then renamed into it. A process that is killed in between leaves
the draft, and the next run sweeps it away. Three things tell such a draft from any other file: its name, which no user
would give; its lock, which the system takes off when the process that writes it ends in whatever way; and, on a network
drive where machines may not see each other's locks, the machine in its name.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from repeat_xai.errors import OutputError, reason

MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
DRAFT = re.compile(r"\.repeat-xai-draft-(?P<machine>[0-9a-f]{8})-[a-z0-9_]{8}(\..*)?", re.DOTALL)
"""The name of a draft: the machine that writes it, and what `tempfile` adds so that no two are the same."""
OLD = 24 * 3600.0
"""Seconds after which another machine's draft, which takes seconds to write, is left over for certain."""


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file that takes `path`'s place when the block ends well, and vanishes when it does not."""
    expect_regular(path)
    with _telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = _draft(path)
    try:
        with _telling(path):
            yield draft
            draft.chmod(0o666 & ~_umask())
            draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink()
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove the drafts that killed runs have left in this folder, but none that is still being written."""
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if DRAFT.fullmatch(path.name)]:
            with suppress(OSError):
                if _left_over(path):
                    path.unlink()


def expect_regular(path: Path) -> None:
    """Refuse a place that is taken by a folder, a FIFO, a device or anything else but a regular file."""
    try:
        kind = path.stat().st_mode
    except OSError:
        if not os.path.islink(path):  # noqa: PTH114 - unlike Path.is_symlink, False for a name no file system would take
            return
        kind = 0  # a link to nothing, or to itself
    except ValueError as error:
        raise OutputError(f"{str(path)!r}: is no name for a file ({reason(error)}); choose another") from error
    if not stat.S_ISREG(kind):
        raise OutputError(f"{path}: is not a regular file; move it away or choose another folder")


def opened(path: Path) -> BinaryIO:
    """The open file, to be read. A FIFO or a device is refused: opening or reading it might never end."""
    expect_regular(path)
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # something else took its place since
        file.close()
        raise OutputError(f"{path}: is not a regular file; move it away or choose another folder")
    return file


def _draft(path: Path) -> tuple[int, Path]:
    """A new draft, and the open file that holds its lock."""
    while True:
        prefix = f".repeat-xai-draft-{MACHINE}-"
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=path.suffix, dir=path.parent)
        if _locked(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # another run came before the lock, and sweeps the draft away


def _left_over(draft: Path) -> bool:
    """Whether nobody writes this draft any more."""
    about, named = draft.lstat(), DRAFT.fullmatch(draft.name)
    elsewhere = named is None or named["machine"] != MACHINE
    if not stat.S_ISREG(about.st_mode) or (elsewhere and time.time() - about.st_mtime < OLD):
        return False
    # To be locked on a network drive a file must be open for writing.
    descriptor = os.open(draft, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return _locked(descriptor) is True
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool | None:
    """Whether the file is locked now by this process: False if another has locked it, None where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Say in one line why a file cannot be written."""
    try:
        yield
    except OSError as error:
        why = error.strerror or reason(error)
        raise OutputError(f"{path}: cannot be written ({why}); choose another folder") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
