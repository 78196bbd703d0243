"""Functions that damage a file, or put something else in its place."""

import io
import json
import os
import socket
import struct
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import PIL.Image


def flipped(share, bit=3):
    """Flip one bit of the byte at this share of the file's length."""

    def damage(path):
        content = bytearray(path.read_bytes())
        content[int(share * (len(content) - 1))] ^= 1 << bit
        path.write_bytes(content)

    return damage


def cut(share):
    """Keep only the first part of the file."""
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def filled(content):
    """Put other content into the file."""
    return lambda path: path.write_bytes(content)


def zeroed(path):
    """Write zeros over the whole file, as some file systems do after a power cut."""
    path.write_bytes(bytes(path.stat().st_size))


def deleted(path):
    path.unlink()


def replaced(old, new):
    """Replace bytes that occur in the file by others."""

    def damage(path):
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))

    return damage


def with_fields(**fields):
    """Change fields of a JSON object; a field whose value is `...` is left out."""

    def damage(path):
        record = json.loads(path.read_text()) | fields
        path.write_text(json.dumps({name: value for name, value in record.items() if value is not ...}))

    return damage


def own_picture(path):
    """Write a picture that is the user's own."""
    PIL.Image.new("RGB", (64, 48), "red").save(path, format="PNG")


def fifo(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def bound_socket(path):
    """Create a socket; it is bound under a short name because the system limits the length."""
    path.unlink(missing_ok=True)
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def link_to(target):
    """Create a symbolic link to this file, or to itself if the target is None."""

    def damage(path):
        path.unlink(missing_ok=True)
        path.symlink_to(path if target is None else target)

    return damage


def moved_and_linked(path):
    """Move the file elsewhere and leave a symbolic link to it."""
    elsewhere = path.parent.parent / f"moved-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


SPECIAL = {
    "a FIFO": fifo,
    "a folder": folder,
    "a socket": bound_socket,
    "an endless device": link_to("/dev/zero"),
    "an empty device": link_to("/dev/null"),
    "a link to itself": link_to(None),
    "a link to nothing": link_to("nowhere/at/all"),
}
"""Functions that create something other than a regular file, by name."""


def npy(array, **header):
    """Return an array as numpy saves it; `header` changes the description of the array."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    if not header:
        return file.getvalue()
    description = np.lib.format.header_data_from_array_1_0(np.asarray(array)) | header
    changed = io.BytesIO()
    np.lib.format.write_array_header_1_0(changed, description)
    return changed.getvalue() + np.asarray(array).tobytes()


def parts_of(path):
    """Return the contents of the files in an `.npz`, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts, path, *, compression=zipfile.ZIP_DEFLATED):
    """Write an `.npz` from a mapping of names to contents, or from a list of such pairs."""
    with zipfile.ZipFile(path, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of a name that is there twice
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)


def with_parts(**parts):
    """Change arrays of an `.npz`, given as arrays or as bytes; one whose value is `...` is left out."""

    def damage(path):
        stored = parts_of(path)
        for name, content in parts.items():
            stored.pop(f"{name}.npy", None)
            if content is not ...:
                stored[f"{name}.npy"] = content if isinstance(content, bytes) else npy(content)
        packed(stored, path)

    return damage


def with_map(name, change):
    """Change one map of an `.npz` by a function."""

    def damage(path):
        with np.load(path) as arrays:
            changed = change(arrays[name].copy())
        with_parts(**{name: changed})(path)

    return damage


def with_text(name, /, **fields):
    """Change fields of the photo or the provenance in an `.npz`; a field whose value is `...` is left out."""

    def damage(path):
        with np.load(path) as arrays:
            record = json.loads(str(arrays[name])) | fields
        text = json.dumps({key: value for key, value in record.items() if value is not ...})
        with_parts(**{name: np.array(text)})(path)

    return damage


def with_wrong_checksum(path):
    """Change the checksum of the first array in the directory of an `.npz`."""
    content = bytearray(path.read_bytes())
    start = content.index(b"PK\x01\x02")
    content[start + 16] ^= 1
    path.write_bytes(content)


def bomb(side, *, claimed_size=None):
    """Give an `.npz` an importance map of `side` × `side` pixels that is compressed a thousand times.

    `claimed_size` is the size in bytes that the directory of the file gives for it; None gives the true one.
    """

    def damage(path):
        header = npy(np.zeros((0, 0), np.float32), shape=(side, side))
        packer = zlib.compressobj(9, wbits=-15)
        start = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
        megabyte = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
        data = start + megabyte * (4 * side * side // 2**20) + packer.flush()
        size = len(header) + 4 * side * side if claimed_size is None else claimed_size
        _store(path, "importance.npy", data, size)

    return damage


def _store(path, name, data, size):
    """Give one array of an `.npz` other compressed bytes, and the size that they claim to unpack to."""
    place = b"x" * len(data)
    packed({**parts_of(path), name: place}, path, compression=zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes().replace(place, data))
    deflated = struct.pack("<HHHIII", zipfile.ZIP_DEFLATED, 0, 33, 0, len(data), size % 2**32)
    for signature, fields, names in ((b"PK\x03\x04", 8, 30), (b"PK\x01\x02", 10, 46)):
        start = content.find(signature)
        while content[start + names : start + names + len(name)] != name.encode():
            start = content.index(signature, start + 1)
        content[start + fields : start + fields + len(deflated)] = deflated
    path.write_bytes(content)
