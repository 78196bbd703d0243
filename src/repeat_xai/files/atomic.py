"""Files that appear whole or not at all, are read without waiting, and leave no drafts behind.

A file is written as a hidden draft beside its place, then renamed into it; a folder likewise. A process that is killed
in between leaves the draft, and the next run sweeps it away. Three things tell such a draft from any other file: its
name, which no user would give; its lock, which the system takes off when the process that writes it ends in whatever
way; and, on a network drive where machines may not see each other's locks, the machine in its name.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from repeat_xai.errors import OutputError, reason

MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
DRAFT = re.compile(r"\.repeat-xai-draft-(?P<machine>[0-9a-f]{8})-[a-z0-9_]{8}(\..*)?", re.DOTALL)
"""The name of a draft: the machine that writes it, and what `tempfile` adds so that no two are the same."""
OLD = 24 * 3600.0
"""Seconds after which another machine's draft, which takes seconds to write, is left over for certain."""
DEEPEST = 32
"""How deep lists and objects in JSON may lie in each other; ours do so less than ten deep."""
PNG = b"\x89PNG\r\n\x1a\n"
"""How a PNG begins."""


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file that takes `path`'s place when the block ends well, and vanishes when it does not."""
    expect_regular(path)
    with _telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = _draft(lambda prefix: tempfile.mkstemp(prefix=prefix, suffix=path.suffix, dir=path.parent))
    try:
        with _telling(path):
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
    with _telling(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = _draft(lambda prefix: _made_folder(prefix, drafts))
    try:
        with _telling(path):
            yield draft
            draft.chmod(0o777 & ~_umask())
            if path.exists():
                shutil.rmtree(path)
            draft.replace(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove the drafts that killed runs have left in this folder, but none that is still being written."""
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if DRAFT.fullmatch(path.name)]:
            with suppress(OSError):
                if _left_over(path):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def remove(path: Path) -> None:
    """Remove a file, where there is one."""
    with _telling(path):
        path.unlink(missing_ok=True)


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


def opened(path: Path) -> BufferedReader:
    """The open file, to be read. A FIFO or a device is refused: opening or reading it might never end."""
    expect_regular(path)
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # something else took its place since
        file.close()
        raise OutputError(f"{path}: is not a regular file; move it away or choose another folder")
    return file


class Png(NamedTuple):
    """What a PNG says of itself."""

    texts: Mapping[str, str] = {}
    whole: bool = False
    """Whether every part of the file is there, and is as it was written."""


def read_png(path: Path, *, most: int) -> Png:
    """What the first so many bytes of a PNG say: its texts, those that are sound, and whether all of it is whole."""
    with opened(path) as file:
        content = file.read(most)
    texts, kind, at, whole = {}, b"", len(PNG), content.startswith(PNG)
    while at + 12 <= len(content):  # a part is its length, its kind, so many bytes, and the checksum of kind and bytes
        end = at + 8 + int.from_bytes(content[at : at + 4])
        kind = content[at + 4 : at + 8]
        sound = zlib.crc32(content[at + 4 : end]) == int.from_bytes(content[end : end + 4])
        whole &= sound
        if sound and kind == b"tEXt":
            name, _, value = content[at + 8 : end].decode("latin-1").partition("\0")
            texts[name] = value
        at = end + 4
    return Png(texts, whole and at == len(content) and kind == b"IEND")


def read_json(path: Path, *, most: int = 2**20) -> dict[str, Any]:
    """The JSON object in a file of at most so many bytes. Anything else is a ValueError that says what is wrong."""
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most} bytes")
    return json_object(content.decode("utf-8"))


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in a text. Anything else is a ValueError that says what is wrong."""
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError("its JSON is no object")
    parts: list[Any] = [found]
    for _ in range(DEEPEST):
        inside = (part.values() if isinstance(part, dict) else part for part in parts if isinstance(part, dict | list))
        parts = [part for each in inside for part in each]
    if parts:
        raise ValueError("its JSON is nested too deep")
    return found


def _draft(make: Callable[[str], tuple[int, str]]) -> tuple[int, Path]:
    """Make a draft whose name has the given prefix; return the open file that holds its lock, and its path."""
    while True:
        descriptor, name = make(f".repeat-xai-draft-{MACHINE}-")
        if _locked(descriptor) is not False and Path(name).exists():
            return descriptor, Path(name)
        os.close(descriptor)  # another run came before the lock, and sweeps the draft away


def _made_folder(prefix: str, parent: Path) -> tuple[int, str]:
    """Make a folder with a new name; return it open, and its path."""
    while True:
        name = tempfile.mkdtemp(prefix=prefix, dir=parent)
        with suppress(FileNotFoundError):  # another run may sweep it away before it is open and locked
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), name


def _left_over(draft: Path) -> bool:
    """Whether nobody writes this draft any more."""
    about, named = draft.lstat(), DRAFT.fullmatch(draft.name)
    elsewhere = named is None or named["machine"] != MACHINE
    folder = stat.S_ISDIR(about.st_mode)
    ours = not draft.suffix if folder else stat.S_ISREG(about.st_mode)
    if not ours or (elsewhere and time.time() - about.st_mtime < OLD):
        return False
    # To be locked on a network drive a file must be open for writing; a folder cannot be.
    how = os.O_RDONLY | os.O_DIRECTORY if folder else os.O_WRONLY
    descriptor = os.open(draft, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
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
