"""Functions that read regular files without waiting, and no further than a limit.

A path may name anything: a FIFO that nobody writes to, an endless device, a file of a terabyte, JSON nested a million
levels deep. These functions refuse all of that instead of hanging or filling the memory.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from repeat_xai.errors import OutputError, reason

MAX_JSON_DEPTH = 32
"""Levels to which lists and objects in JSON may be nested; the files of this package have fewer than ten."""
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
"""Bytes with which every PNG file begins."""


def expect_regular(path: Path) -> None:
    """Raise an OutputError if a folder, a FIFO, a device or anything else but a regular file is at `path`.

    A path at which there is nothing is accepted.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        if not os.path.islink(path):  # noqa: PTH114 - unlike Path.is_symlink, False for a name no file system would take
            return
        mode = 0  # a link to nothing, or to itself
    except ValueError as error:
        raise OutputError(f"{str(path)!r}: is no name for a file ({reason(error)}); choose another") from error
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: is not a regular file; move it away or choose another folder")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    A FIFO or a device raises an OutputError, because opening or reading it might never end.
    """
    expect_regular(path)
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # something else took its place since the check above
        file.close()
        raise OutputError(f"{path}: is not a regular file; move it away or choose another folder")
    return file


class Png(NamedTuple):
    """Texts in a PNG file, and whether the file is undamaged."""

    texts: Mapping[str, str] = {}
    """Contents of the undamaged text chunks by their keyword, for example `Software`."""
    whole: bool = False
    """Whether the file has all its chunks, up to the last, and each has the right checksum."""


def read_png(path: Path, *, max_bytes: int) -> Png:
    """Read the texts in the first `max_bytes` of a PNG file, and check the file if it is no longer than that."""
    with open_regular(path) as file:
        content = file.read(max_bytes)
    texts, kind, start, whole = {}, b"", len(PNG_SIGNATURE), content.startswith(PNG_SIGNATURE)
    while start + 12 <= len(content):  # a chunk is its length, its kind, its data, and the checksum of kind and data
        end = start + 8 + int.from_bytes(content[start : start + 4])
        kind = content[start + 4 : start + 8]
        sound = zlib.crc32(content[start + 4 : end]) == int.from_bytes(content[end : end + 4])
        whole &= sound
        if sound and kind == b"tEXt":
            name, _, value = content[start + 8 : end].decode("latin-1").partition("\0")
            texts[name] = value
        start = end + 4
    return Png(texts, whole and start == len(content) and kind == b"IEND")


def read_json(path: Path, *, max_bytes: int = 2**20) -> dict[str, Any]:
    """Read the JSON object in a file of at most `max_bytes`.

    Anything else raises a ValueError that says what is wrong with the file.
    """
    with open_regular(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it has more than {max_bytes} bytes")
    return json_object(content.decode("utf-8"))


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object that is nested at most `MAX_JSON_DEPTH` levels deep.

    Anything else raises a ValueError that says what is wrong with the text.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError("its JSON is no object")
    level: list[Any] = [value]
    for _ in range(MAX_JSON_DEPTH):
        nested = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [part for parts in nested for part in parts]
    if level:
        raise ValueError("its JSON is nested too deep")
    return value
