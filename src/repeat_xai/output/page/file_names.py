"""File names as pages show them.

A page may be sent to somebody else, so it shows the names of files but no folders of the machine that made it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from repeat_xai.errors import in_one_line

WHOLE_PATH = re.compile(r"(?P<prefix>(?:[\w-]{2,}:)?)(?P<path>/(?!/).*|[A-Za-z]:[\\/].*)", re.DOTALL)
"""A text that is an absolute path and nothing else, after a prefix such as `onnx:` or without one."""
FOLDERS = re.compile(r"""(?<![^\s:='"(\[,])(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'"]+)+[\\/](?=[^\s\\/])""")
"""The folders of an absolute path within a sentence; an address such as https://… is not one."""


def image_names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each image: its file name, after the folder's name where several images share a file name."""
    counts = Counter(path.name for path in paths)
    labels = (path.name if counts[path.name] == 1 else f"{path.parent.name}/{path.name}" for path in paths)
    return [_printable(label) for label in labels]


def relative_link(path: Path, folder: Path) -> str:
    """Return the link to a file from a page that lies in the folder."""
    return quote(os.fsencode(Path(os.path.relpath(path, folder)).as_posix()))


def file_name(text: str) -> str:
    """Return the name of the file if the text is an absolute path, otherwise the text itself.

    >>> file_name("/home/ann/my photos/cat.png"), file_name("onnx:/data/net.onnx"), file_name("hf:facebook/dinov2")
    ('cat.png', 'onnx:net.onnx', 'hf:facebook/dinov2')
    """
    match = WHOLE_PATH.fullmatch(text)
    if match is None:
        return text
    path = match["path"]
    return match["prefix"] + (PurePosixPath(path) if path.startswith("/") else PureWindowsPath(path)).name


def without_folders(text: str, *known: Path) -> str:
    """Return a sentence in which every absolute path is replaced by its file name.

    A path with spaces in it cannot be told from the words around it; those that are `known` are replaced all the same.

    >>> without_folders("/data/cats/a.png: cut short; see https://example.org/help")
    'a.png: cut short; see https://example.org/help'
    >>> without_folders("my photos/a.png: cut short", Path("my photos/a.png"))
    'a.png: cut short'
    """
    folders = {
        f"{path.parent}{os.sep}" for given in known for path in (given, given.absolute()) if path.parent != Path()
    }
    for folder in sorted(folders, key=len, reverse=True):  # a folder goes before the folders that it lies in
        for spelling in (_printable(folder), in_one_line(folder)):
            text = re.sub(rf"(?<![\w./\\-]){re.escape(spelling)}", "", text)
    return FOLDERS.sub("", text)


def without_paths(value: Any) -> Any:
    """Return plain data in which every text that is an absolute path is replaced by its file name."""
    if isinstance(value, Mapping):
        return dict(zip(_distinct(map(file_name, map(str, value))), map(without_paths, value.values()), strict=True))
    if isinstance(value, list | tuple):
        return [without_paths(part) for part in value]
    return file_name(value) if isinstance(value, str) else value


def paths_in(value: Any) -> Iterator[Path]:
    """Yield every absolute path that is a text of its own in plain data."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from paths_in(str(key))
            yield from paths_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from paths_in(part)
    elif isinstance(value, str) and (match := WHOLE_PATH.fullmatch(value)):
        yield Path(match["path"])


def _distinct(names: Iterable[str]) -> Iterator[str]:
    """Yield the names, with a number after each that has come before."""
    counts: Counter[str] = Counter()
    for name in names:
        counts[name] += 1
        yield name if counts[name] == 1 else f"{name} ({counts[name]})"


def _printable(text: str) -> str:
    """Return a text with a question mark in place of each byte of a file name that is no valid character."""
    return text.encode(errors="replace").decode()
