"""Reading of the photos that users upload or pick, within limits of size."""

from __future__ import annotations

import ctypes
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

from torch import nn

from repeat_xai.data.decoding import open_picture
from repeat_xai.data.image_files import sample_path
from repeat_xai.data.images import load_image
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.errors import ImageError
from repeat_xai.types import Encoder, Image, Photo

MAX_PHOTO_BYTES = 32 * 2**20
MAX_PHOTO_PIXELS = 40_000_000
DECODING_LOCK = threading.Lock()
"""Held while a photo is decoded and made smaller, because a large photo takes much memory meanwhile."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenPhoto:
    """A photo that a user has uploaded, or picked among the samples."""

    path: Path
    name: str
    snippet_path: str
    """Path by which the command and the script to be copied read the photo."""
    photo: Photo

    def image_for(self, encoder: Encoder) -> Image:
        """Return the photo as an input of an encoder."""
        return _load(self.path, self.name, encoder)


def read_photo(path: Path, *, snippet_path: str | None = None) -> ChosenPhoto:
    """Return the photo in a file, or raise an ImageError; `snippet_path` is the file's name by default."""
    _expect_small(path)
    photo = _load(path, path.name, _encoder_for_display()).photo
    return ChosenPhoto(path=path, name=path.name, snippet_path=snippet_path or path.name, photo=photo)


def sample_photo(name: str) -> ChosenPhoto:
    """Return one of the sample photos, which come with scikit-image."""
    path = sample_path(name)
    return read_photo(path, snippet_path=str(path))


def _load(path: Path, name: str, encoder: Encoder) -> Image:
    try:
        with DECODING_LOCK:
            return load_image(path, encoder, name=name)
    except ImageError as error:
        # The message is shown to the user, who is not to learn where the server keeps the file.
        raise ImageError(str(error).replace(str(path), name)) from error
    finally:
        _return_memory()


def _return_memory() -> None:
    """Return freed memory to the system: the C library would keep what a large photo took, some 350 MB."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # only GNU's C library has this function
            ctypes.CDLL(None).malloc_trim(0)


def _expect_small(path: Path) -> None:
    """Refuse a file that is too large before it is decoded."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ImageError(f"{path.name}: did not arrive; upload it again") from error
    if size > MAX_PHOTO_BYTES:
        limit = MAX_PHOTO_BYTES // 2**20
        raise ImageError(f"{path.name}: {size / 2**20:.0f} MB is more than the {limit} MB accepted here")
    try:
        with open_picture(path) as picture:
            width, height = picture.size
    except Exception:  # decoding says what is wrong with the file
        return
    if width * height > MAX_PHOTO_PIXELS:
        raise ImageError(
            f"{path.name}: {width}×{height} pixels are more than the {MAX_PHOTO_PIXELS // 1_000_000} million accepted "
            "here; make it smaller first"
        )


@cache
def _encoder_for_display() -> Encoder:
    """Return an encoder that accepts any photo, because the photo is shown before an encoder is chosen."""
    return load_encoder(nn.Identity(), device="cpu")
