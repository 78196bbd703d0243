"""Ways to damage a file or to put something else in its place."""

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
    """Flip one bit of the byte that lies at this share of the file."""

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
    """Put other bytes in the place of some that are in the file once or more."""

    def damage(path):
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))

    return damage


def with_fields(**fields):
    """Change fields of a JSON object; a field that is `...` is left out."""

    def damage(path):
        found = json.loads(path.read_text()) | fields
        path.write_text(json.dumps({name: value for name, value in found.items() if value is not ...}))

    return damage


def own_picture(path):
    """A picture that a user put there."""
    PIL.Image.new("RGB", (64, 48), "red").save(path, format="PNG")


def fifo(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def bound_socket(path):
    """A socket; its name is short, as the system wants it."""
    path.unlink(missing_ok=True)
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def link_to(target):
    """A symbolic link to this file; None: to itself."""

    def damage(path):
        path.unlink(missing_ok=True)
        path.symlink_to(path if target is None else target)

    return damage


def moved_and_linked(path):
    """The file lies elsewhere, and a symbolic link leads there."""
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
"""What is no regular file, by name."""


def npy(array, **header):
    """An array as numpy saves it; with `header`, what it says of the array is changed."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    if not header:
        return file.getvalue()
    told = np.lib.format.header_data_from_array_1_0(np.asarray(array)) | header
    changed = io.BytesIO()
    np.lib.format.write_array_header_1_0(changed, told)
    return changed.getvalue() + np.asarray(array).tobytes()


def parts_of(path):
    """The files in an `.npz`, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts, path, *, compression=zipfile.ZIP_DEFLATED):
    """Write files into an `.npz`: a mapping of names to contents, or a list of such pairs."""
    with zipfile.ZipFile(path, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)


def with_parts(**parts):
    """Change arrays of an `.npz`, given as arrays or as bytes; one that is `...` is left out."""

    def damage(path):
        found = parts_of(path)
        for name, content in parts.items():
            found.pop(f"{name}.npy", None)
            if content is not ...:
                found[f"{name}.npy"] = content if isinstance(content, bytes) else npy(content)
        packed(found, path)

    return damage


def with_map(name, change):
    """Change one map of an `.npz` by a function."""

    def damage(path):
        with np.load(path) as arrays:
            changed = change(arrays[name].copy())
        with_parts(**{name: changed})(path)

    return damage


def with_text(name, /, **fields):
    """Change fields of the photo or the provenance in an `.npz`; a field that is `...` is left out."""

    def damage(path):
        with np.load(path) as arrays:
            found = json.loads(str(arrays[name])) | fields
        text = json.dumps({key: value for key, value in found.items() if value is not ...})
        with_parts(**{name: np.array(text)})(path)

    return damage


def with_wrong_checksum(path):
    """The list of an `.npz` says another checksum of its first array than that has."""
    content = bytearray(path.read_bytes())
    start = content.index(b"PK\x01\x02")
    content[start + 16] ^= 1
    path.write_bytes(content)


def bomb(side, *, told=None):
    """An `.npz` whose importance map, of so many pixels a side, is packed a thousand times smaller than it is.

    `told` is the size in bytes that the list of the file's parts gives for it, if not the true one.
    """

    def damage(path):
        header = npy(np.zeros((0, 0), np.float32), shape=(side, side))
        packer = zlib.compressobj(9, wbits=-15)
        begun = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
        megabyte = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
        data = begun + megabyte * (4 * side * side // 2**20) + packer.flush()
        size = len(header) + 4 * side * side if told is None else told
        _store(path, "importance.npy", data, size)

    return damage


def _store(path, name, data, size):
    """Give one array of an `.npz` other compressed bytes, and say that it unpacks to so many."""
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
