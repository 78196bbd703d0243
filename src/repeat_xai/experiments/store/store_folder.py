"""A folder of files on a disk or behind any URL that fsspec knows: a file is there whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import final

from repeat_xai.errors import OutputError, reason
from repeat_xai.files.atomic import remove_old_drafts, writing

SUFFIX = ".parquet"
OBJECTS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"}
"""Where a file appears whole even if whoever writes it is killed; elsewhere it is written beside its place."""


PATIENCE = 60.0
"""Seconds to wait for another run that merges files."""


class GoneError(Exception):
    """A file that was listed is there no more."""


@final
class Folder:
    """Its files are those with the suffix, but for hidden ones, which are not finished."""

    def __init__(self, url: str | Path) -> None:
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        self.url = str(url)
        with _telling(f"{url}: cannot be opened as a store"):
            if isinstance(url, Path):
                self._files, self._path = LocalFileSystem(), url.absolute().as_posix()
            else:
                self._files, self._path = fsspec.core.url_to_fs(url)
            self._files.makedirs(self._path, exist_ok=True)
        self._on_disk = isinstance(self._files, LocalFileSystem)
        protocols = self._files.protocol
        if self._on_disk:
            remove_old_drafts(Path(self._path))
        self._whole = not OBJECTS.isdisjoint((protocols,) if isinstance(protocols, str) else protocols)

    def sizes(self) -> dict[str, int]:
        """Bytes of every file, by name."""
        with _telling(f"{self.url}: cannot be read"):
            self._files.invalidate_cache(self._path)  # others write here too
            try:
                found = self._files.ls(self._path, detail=True)
            except FileNotFoundError:
                if self._on_disk:
                    raise
                found = []  # among objects a folder is there when something is in it
        sizes = {entry["name"]: int(entry["size"] or 0) for entry in found if entry["type"] == "file"}
        return {name: sizes[name] for name in sorted(sizes) if _finished(name)}

    def read(self, name: str) -> bytes:
        with _telling(f"{name}: cannot be read"):
            try:
                content: bytes = self._files.cat_file(name)
            except OSError as error:
                if isinstance(error, FileNotFoundError) or error.errno == errno.ESTALE:
                    raise GoneError(name) from error
                raise
        return content

    def write(self, content: bytes) -> None:
        """Under a name of its own."""
        name = f"{uuid.uuid4().hex}{SUFFIX}"
        path, draft = (f"{self._path.rstrip('/')}/{dot}{name}" for dot in ("", "."))
        if self._on_disk:
            with writing(Path(path)) as beside, beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return
        with _telling(f"{self.url}: cannot be written"):
            self._files.pipe_file(path if self._whole else draft, content)
            if not self._whole:
                self._files.mv(draft, path)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Wait until no other run of this machine is inside such a block; yield False if that takes too long.

        Where the folder is not on a disk, or the disk knows no locks, runs cannot wait for each other.
        """
        if not self._on_disk:
            yield True
            return
        with _telling(f"{self.url}: cannot be read"):
            descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield _lock(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> None:
        with _telling(f"{name}: cannot be removed"), suppress(FileNotFoundError):
            self._files.rm_file(name)


def _lock(descriptor: int) -> bool:
    """Lock an open folder; say whether that was possible within `PATIENCE` seconds."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:  # the disk knows no locks
            return True
        else:
            return True
    return False


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Whatever goes wrong in one line: behind a URL is a library with errors of its own."""
    try:
        yield
    except GoneError:
        raise
    except Exception as error:
        raise OutputError(f"{what} ({reason(error)})") from error


def _finished(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.rpartition("/")[2].startswith(".")
