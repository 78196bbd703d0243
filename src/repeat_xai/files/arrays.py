"""Arrays in files of numpy, `.npz` and `.npy`: no file takes more memory or time than an array of its kind may.

A file says in its header what it holds, and headers lie. So the header is read first, what it says is held against what
the array may be and against how long the file is, and only then memory is taken. Objects, which would be code, are
never read.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from repeat_xai.files.atomic import opened

LONGEST_HEADER = 1000
"""Bytes that describe one array in a file at most, both before its values and in the list at the file's end."""
LIST_END, LONG_LIST_END = "<4s4xHHIIH", b"PK\x06\x07"
"""The last bytes of a ZIP file, which say how long its list of entries is, and what comes before for a huge file."""


class Kind(NamedTuple):
    """What one array in a file may be."""

    dtypes: tuple[str, ...]
    """The types its values may have, as numpy names them: `<f4`, `|u1`, or `<U` for text of any length."""
    dimensions: int
    most: int
    """Bytes that its values may take."""


def read_arrays(path: Path, kinds: Mapping[str, Kind]) -> dict[str, np.ndarray]:
    """Return the arrays in an `.npz` file by name, each of one of these kinds.

    What is wrong with the file is said by a ValueError, or by an error of the library that meets it.
    """
    with opened(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        _expect_short(file, kinds)
        with zipfile.ZipFile(file) as archive:
            names = [entry.filename.removesuffix(".npy") for entry in archive.infolist()]
            if len(set(names)) < len(names) or not set(names) <= set(kinds):
                raise ValueError(f"it holds {names}")
            entries = zip(names, archive.infolist(), strict=True)
            return {name: _array(archive, entry, kinds[name]) for name, entry in entries}


def read_array(path: Path, kind: Kind) -> np.ndarray:
    """Return the array in an `.npy` file. What is wrong with the file is said as `read_arrays` does."""
    with opened(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        _expect_kind(file.read(LONGEST_HEADER), kind, "the array", size=os.fstat(file.fileno()).st_size)
        file.seek(0)
        found: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return found


def _expect_short(file: BinaryIO, kinds: Mapping[str, Kind]) -> None:
    """Refuse a ZIP file that is too long for these arrays, or whose list of entries is."""
    size, last = file.seek(0, os.SEEK_END), struct.calcsize(LIST_END)
    if size > sum(kind.most + 2 * LONGEST_HEADER for kind in kinds.values()):
        raise ValueError(f"it has {size} bytes")
    file.seek(-min(size, 2 * last), os.SEEK_END)
    tail = file.read()
    if LONG_LIST_END in tail or len(tail) < last:
        raise ValueError("it ends as no file of ours does")
    signature, _, entries, length, _, comment = struct.unpack(LIST_END, tail[-last:])
    if signature != b"PK\x05\x06" or comment or entries > len(kinds) or length > entries * LONGEST_HEADER:
        raise ValueError("it ends as no file of ours does")


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, kind: Kind) -> np.ndarray:
    """Return one array of an `.npz`."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename} is compressed in another way than ours")
    with archive.open(entry) as file:
        _expect_kind(file.read(LONGEST_HEADER), kind, entry.filename, size=entry.file_size)
    with archive.open(entry) as file:
        found: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return found


def _expect_kind(head: bytes, kind: Kind, name: str, *, size: int) -> None:
    """Refuse an array by its header, before memory is taken for its values; `size` is how long both are together."""
    file = BytesIO(head)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is of another version of numpy's format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=LONGEST_HEADER)
    if dtype.str not in kind.dtypes and not ("<U" in kind.dtypes and dtype.str.startswith("<U")):
        raise ValueError(f"{name} holds {dtype}")
    bytes_of_values = math.prod(shape) * dtype.itemsize
    if len(shape) != kind.dimensions or bytes_of_values > kind.most:
        raise ValueError(f"{name} has the shape {shape}")
    if size != file.tell() + bytes_of_values:
        raise ValueError(f"{name} has {size} bytes")
