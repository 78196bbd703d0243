"""Any folder of images, with those in the folders below it."""

from __future__ import annotations

import os
from pathlib import Path

from repeat_xai.data.dataset import Dataset, Sample
from repeat_xai.errors import ImageError

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"}


def folder(root: Path, *, stamped: bool = True) -> Dataset:
    """Return the images in a folder and the folders below it, in the order of their names.

    If `stamped`, an image's key holds the size of its file and the time of its last change beside its name.
    """
    try:
        found = sorted(Path(at) / name for at, _, names in os.walk(root, onerror=_refuse) for name in names)
        paths = [path for path in found if path.suffix.lower() in SUFFIXES and path.is_file()]
        keys = [_key(path, root, stamped=stamped) for path in paths]
    except OSError as error:
        raise ImageError(f"{root}: cannot be read ({error.strerror})") from error
    if not paths:
        raise ImageError(f"{root}: a folder with no JPEG, PNG, WebP, BMP or TIFF in it")
    return Dataset(
        name=str(root.resolve()).encode(errors="backslashreplace").decode(),
        keys=keys,
        load=lambda number: Sample(picture=paths[number]),
    )


def _key(path: Path, root: Path, *, stamped: bool) -> str:
    name = path.relative_to(root).as_posix().encode(errors="backslashreplace").decode()
    about = path.stat()
    return f"{name} ({about.st_size} bytes, {about.st_mtime_ns})" if stamped else name


def _refuse(error: OSError) -> None:
    raise error
