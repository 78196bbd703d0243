"""Any folder of images, with those in the folders below it."""

from __future__ import annotations

import os
from pathlib import Path

from repeat_xai.datasets.dataset import Dataset, Sample
from repeat_xai.errors import ImageError

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"}


def folder(root: Path) -> Dataset:
    """Its images in the order of their names; one is known by its place and its size in bytes."""
    try:
        found = sorted(Path(at) / name for at, _, names in os.walk(root, onerror=_refuse) for name in names)
    except OSError as error:
        raise ImageError(f"{root}: cannot be read ({error.strerror})") from error
    paths = [path for path in found if path.suffix.lower() in SUFFIXES]
    if not paths:
        raise ImageError(f"{root}: a folder with no JPEG, PNG, WebP, BMP or TIFF in it")
    keys = [f"{path.relative_to(root).as_posix()} ({path.stat().st_size} bytes)" for path in paths]
    return Dataset(name=str(root.resolve()), keys=keys, load=lambda number: Sample(picture=paths[number]))


def _refuse(error: OSError) -> None:
    raise error
