"""Image files on disk: which files in a folder are images, folders as datasets, and the sample photos.

`explain`, `screen` and `evaluate` look for images by the same rules. A folder stands for the images in it and in all
folders below it, in sorted order. Hidden files and folders are passed over. Every other file that is left out is
counted by its kind, so that the commands can say what they did not use.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from repeat_xai.data.dataset import Dataset, Sample
from repeat_xai.errors import ConfigurationError, ImageError, OutputError, in_one_line
from repeat_xai.files.reading import read_png

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"}
"""Endings of the files in a folder that are taken for images."""
FORMAT_NAMES = "JPEG, PNG, WebP, BMP or TIFF"
"""The formats that the suffixes stand for, as error messages name them."""
SIGNATURE = "repeat-xai"
"""Beginning of the PNG text `Software` in every picture that this package draws."""
HEAD_BYTES = 2**12
"""Length of the part of a PNG in which its texts are."""
MAX_KINDS = 6
"""Kinds of files that one line names; the rest are counted together."""
SAMPLES = ("chelsea.png", "coffee.png", "rocket.jpg", "astronaut.png")
"""File names of the photos that come with scikit-image's wheel, which need no network."""


class FoundImages(NamedTuple):
    """Images among files and folders, and what was left out of the folders."""

    images: list[Path]
    left_out: list[str]
    """One line for each folder in which files were left out, for example `photos: left out 3 .gif, 1 .txt`."""


class FolderImages(NamedTuple):
    """Images in a folder and below it, and the number of other files of each kind."""

    images: list[Path]
    left_out: Counter[str]


def find_images(paths: Iterable[Path], *, results: Path | None = None, excluded: Collection[Path] = ()) -> FoundImages:
    """Find the images among files and folders; a folder stands for the images in it and below it.

    A file is always taken, whatever its suffix, and so is a path at which there is no image at all: loading it then
    gives an error that says what is wrong with it. Folders named in `excluded`, and the folder `results` that results
    are to be written to, are not searched. If `results` is itself one of the folders to be searched, that is refused,
    since results would lie among the images.
    """
    skipped = {folder.resolve() for folder in excluded} | ({results.resolve()} if results is not None else set())
    images: list[Path] = []
    notes: list[str] = []
    for path in paths:
        in_folder: list[Path] = []
        if os.path.isdir(path):  # noqa: PTH112 - unlike Path.is_dir, False for a name no file system would take
            if results is not None and path.resolve() == results.resolve():
                raise ConfigurationError(f"{results}: results would lie among the images; choose another folder")
            in_folder, left_out = search_folder(path, skipped=skipped)
            if left_out:
                notes.append(left_out_line(path, left_out))
        images += in_folder or [path]
    return FoundImages(list(dict.fromkeys(images)), notes)


def search_folder(folder: Path, *, skipped: Collection[Path] = ()) -> FolderImages:
    """Find the images in a folder and in all folders below it, in sorted order; do not descend into `skipped` ones.

    Pictures that this package has drawn are left out, because results of an earlier run may lie in the folder. So are
    links to other folders, which may lead in circles.
    """
    images: list[Path] = []
    left_out: Counter[str] = Counter()

    def count_unreadable(error: OSError) -> None:
        if Path(error.filename) == folder:
            raise ImageError(f"{folder}: cannot be read ({error.strerror})") from error
        left_out["unreadable folder"] += 1

    for parent, folders, names in os.walk(folder, onerror=count_unreadable):
        below = [Path(parent, name) for name in folders if not name.startswith(".")]
        below = [path for path in below if not skipped or path.resolve() not in skipped]
        left_out["linked folder"] += sum(path.is_symlink() for path in below)
        folders[:] = [path.name for path in below if not path.is_symlink()]
        for path in (Path(parent, name) for name in names if not name.startswith(".")):
            suffix = path.suffix.lower()
            if suffix not in SUFFIXES:
                left_out[suffix or "suffixless file"] += 1
            elif not path.is_file():
                left_out["broken link" if path.is_symlink() else "special file"] += 1
            elif suffix == ".png" and _is_drawn_by_this_package(path):
                left_out["repeat-xai picture"] += 1
            else:
                images.append(path)
    return FolderImages(sorted(images), +left_out)


def left_out_line(folder: Path, left_out: Counter[str]) -> str:
    """Return a line that says how many files of which kind were left out of a folder.

    >>> left_out_line(Path("photos"), Counter({".txt": 1, ".gif": 3, "linked folder": 2}))
    'photos: left out 3 .gif, 2 linked folders, 1 .txt'
    """
    kinds = sorted(left_out.items(), key=lambda kind: (-kind[1], kind[0]))
    if others := sum(count for _, count in kinds[MAX_KINDS:]):
        kinds = [*kinds[:MAX_KINDS], ("other file", others)]
    return in_one_line(f"{folder}: left out {', '.join(_counted(kind, count) for kind, count in kinds)}")


def image_folder(root: Path, *, stamped: bool = True) -> Dataset:
    """Return the images in a folder and in all folders below it as a dataset, in sorted order.

    If `stamped`, the key of an image holds the size of its file and the time of its last change, beside its name.
    """
    images, left_out = search_folder(root)
    if not images:
        raise ImageError(f"{root}: a folder with no {FORMAT_NAMES} in it")
    try:
        keys = [_key(path, root, stamped=stamped) for path in images]
    except OSError as error:
        raise ImageError(f"{root}: cannot be read ({error.strerror})") from error
    return Dataset(
        name=str(root.resolve()).encode(errors="backslashreplace").decode(),
        keys=keys,
        load=lambda number: Sample(picture=images[number]),
        left_out=left_out_line(root, left_out) if left_out else "",
    )


def sample_path(name: str) -> Path:
    """Return the path of one of the photos `SAMPLES`; scikit-image itself, which is slow to import, is not imported."""
    package = find_spec("skimage")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "data" / name


def _is_drawn_by_this_package(path: Path) -> bool:
    """Return whether a PNG says that this package has drawn it."""
    try:
        texts = read_png(path, max_bytes=HEAD_BYTES).texts
    except (OSError, OutputError):
        return False
    return texts.get("Software", "").startswith(SIGNATURE)


def _counted(kind: str, count: int) -> str:
    """Return a number of files with their kind; a suffix has no plural."""
    return f"{count} {kind}" if count == 1 or kind.startswith(".") else f"{count} {kind}s"


def _key(path: Path, root: Path, *, stamped: bool) -> str:
    name = path.relative_to(root).as_posix().encode(errors="backslashreplace").decode()
    status = path.stat()
    return f"{name} ({status.st_size} bytes, {status.st_mtime_ns})" if stamped else name
