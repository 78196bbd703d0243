"""Functions that read numpy's files, `.npz` and `.npy`, with no more memory or time than arrays of their kind may take.

A file announces in its header what it holds, and headers may lie. Therefore the header is read first, and compared with
what the array may be and with the length of the file; only then is memory allocated. Arrays of Python objects, which
would be code, are never read.
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

from repeat_xai.files.reading import open_regular

MAX_HEADER_BYTES = 1000
"""Bytes that may describe one array in a file, both before its values and in the list of entries at the file's end."""
LIST_END, LONG_LIST_END = "<4s4xHHIIH", b"PK\x06\x07"
"""Format of the last bytes of a ZIP file, which say how long its list of entries is, and what precedes them in a file
of more than 4 GB."""


class ArrayKind(NamedTuple):
    """Types, number of dimensions and size that an array in a file may have."""

    dtypes: tuple[str, ...]
    """Types that the values may have, as numpy names them: `<f4`, `|u1`, or `<U` for text of any length."""
    dimensions: int
    """Number of dimensions."""
    max_bytes: int
    """Largest size of the values, in bytes."""


def read_arrays(path: Path, kinds: Mapping[str, ArrayKind]) -> dict[str, np.ndarray]:
    """Read the arrays in an `.npz` file; `kinds` holds the names that may occur, and the kind of each array.

    A file that holds anything else raises a ValueError, or an error of the library that finds it damaged.
    """
    with open_regular(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        _expect_short(file, kinds)
        with zipfile.ZipFile(file) as archive:
            names = [entry.filename.removesuffix(".npy") for entry in archive.infolist()]
            if len(set(names)) < len(names) or not set(names) <= set(kinds):
                raise ValueError(f"it holds {names}")
            entries = zip(names, archive.infolist(), strict=True)
            return {name: _read_entry(archive, entry, kinds[name]) for name, entry in entries}


def read_array(path: Path, kind: ArrayKind) -> np.ndarray:
    """Read the array in an `.npy` file; raise the errors that `read_arrays` raises."""
    with open_regular(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        _expect_kind(file.read(MAX_HEADER_BYTES), kind, "the array", size=os.fstat(file.fileno()).st_size)
        file.seek(0)
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _expect_short(file: BinaryIO, kinds: Mapping[str, ArrayKind]) -> None:
    """Raise a ValueError if a ZIP file, or its list of entries, is longer than these arrays need."""
    size, last = file.seek(0, os.SEEK_END), struct.calcsize(LIST_END)
    if size > sum(kind.max_bytes + 2 * MAX_HEADER_BYTES for kind in kinds.values()):
        raise ValueError(f"it has {size} bytes")
    file.seek(-min(size, 2 * last), os.SEEK_END)
    tail = file.read()
    if LONG_LIST_END in tail or len(tail) < last:
        raise ValueError("its end is not that of an array file")
    signature, _, entries, length, _, comment = struct.unpack(LIST_END, tail[-last:])
    if signature != b"PK\x05\x06" or comment or entries > len(kinds) or length > entries * MAX_HEADER_BYTES:
        raise ValueError("its end is not that of an array file")


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, kind: ArrayKind) -> np.ndarray:
    """Read one array of an `.npz` file."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename} has an unusual compression")
    with archive.open(entry) as file:
        _expect_kind(file.read(MAX_HEADER_BYTES), kind, entry.filename, size=entry.file_size)
    with archive.open(entry) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _expect_kind(head: bytes, kind: ArrayKind, name: str, *, size: int) -> None:
    """Raise a ValueError if a header announces an array of another kind, before memory is allocated for its values.

    `size` is the length of header and values together.
    """
    file = BytesIO(head)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is of another version of numpy's format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=MAX_HEADER_BYTES)
    if dtype.str not in kind.dtypes and not ("<U" in kind.dtypes and dtype.str.startswith("<U")):
        raise ValueError(f"{name} holds {dtype}")
    bytes_of_values = math.prod(shape) * dtype.itemsize
    if len(shape) != kind.dimensions or bytes_of_values > kind.max_bytes:
        raise ValueError(f"{name} has the shape {shape}")
    if size != file.tell() + bytes_of_values:
        raise ValueError(f"{name} has {size} bytes")
