"""A folder of files on a disk or behind any URL that fsspec knows, in which a file appears whole or not at all."""

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
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"}
"""Protocols by which a file appears whole even if its writer is killed; by others a draft is written and then moved."""
LOCK_TIMEOUT = 60.0
"""Seconds to wait for another run that merges files."""


class GoneError(Exception):
    """A file that was listed is missing."""


@final
class StoreFolder:
    """A folder whose files are those with the suffix `.parquet`; hidden ones are drafts and do not count."""

    def __init__(self, url: str | Path) -> None:
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        self.url = str(url)
        with _one_line_errors(f"{url}: cannot be opened as a store"):
            if isinstance(url, Path):
                self._files, self._path = LocalFileSystem(), url.absolute().as_posix()
            else:
                self._files, self._path = fsspec.core.url_to_fs(url)
            self._files.makedirs(self._path, exist_ok=True)
        self._on_disk = isinstance(self._files, LocalFileSystem)
        protocols = self._files.protocol
        if self._on_disk:
            remove_old_drafts(Path(self._path))
        self._appears_whole = not OBJECT_STORES.isdisjoint((protocols,) if isinstance(protocols, str) else protocols)

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes, by its name; refuse a file's name that something else has."""
        with _one_line_errors(f"{self.url}: cannot be read"):
            self._files.invalidate_cache(self._path)  # other runs write here too
            try:
                entries = self._files.ls(self._path, detail=True)
            except FileNotFoundError:
                if self._on_disk:
                    raise
                entries = []  # an object store has a folder only once something is in it
        by_name = {entry["name"]: entry for entry in entries if _finished(entry["name"])}
        for name, entry in by_name.items():
            if entry["type"] != "file":
                raise OutputError(f"{name}: is not a regular file; move it away and run again")
        return {name: int(by_name[name]["size"] or 0) for name in sorted(by_name)}

    def read(self, name: str) -> bytes:
        """Return the content of a file; raise a GoneError if it is missing."""
        with _one_line_errors(f"{name}: cannot be read"):
            try:
                content: bytes = self._files.cat_file(name)
            except OSError as error:
                if isinstance(error, FileNotFoundError) or error.errno == errno.ESTALE:
                    raise GoneError(name) from error
                raise
        return content

    def write(self, content: bytes) -> None:
        """Write a new file, under a name that no other file has."""
        name = f"{uuid.uuid4().hex}{SUFFIX}"
        path, draft = (f"{self._path.rstrip('/')}/{dot}{name}" for dot in ("", "."))
        if self._on_disk:
            with writing(Path(path)) as beside, beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return
        with _one_line_errors(f"{self.url}: cannot be written"):
            self._files.pipe_file(path if self._appears_whole else draft, content)
            if not self._appears_whole:
                self._files.mv(draft, path)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Wait until no other run of this machine is inside such a block, then yield True, or False after a timeout.

        If the folder is not on a disk, or the disk supports no locks, runs cannot wait for each other: yield True.
        """
        if not self._on_disk:
            yield True
            return
        with _one_line_errors(f"{self.url}: cannot be read"):
            descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield _lock(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        with _one_line_errors(f"{name}: cannot be removed"), suppress(FileNotFoundError):
            self._files.rm_file(name)


def _lock(descriptor: int) -> bool:
    """Lock an open folder, and return whether that was possible within `LOCK_TIMEOUT` seconds."""
    until = time.monotonic() + LOCK_TIMEOUT
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:  # the disk supports no locks
            return True
        else:
            return True
    return False


@contextmanager
def _one_line_errors(problem: str) -> Iterator[None]:
    """Turn any error into an OutputError of one line, since each of fsspec's libraries raises errors of its own."""
    try:
        yield
    except GoneError:
        raise
    except Exception as error:
        raise OutputError(f"{problem} ({reason(error)})") from error


def _finished(name: str) -> bool:
    """Return whether a file holds rows and is not a draft."""
    return name.endswith(SUFFIX) and not name.rpartition("/")[2].startswith(".")
