"""A file somebody gives → a photo, if it is one and not too large."""

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

MOST_BYTES = 32 * 2**20
MOST_PIXELS = 40_000_000
DECODING = threading.Lock()
"""One at a time: a large photo takes much memory while it is made smaller."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Given:
    """A photo that was given, and what it is called."""

    path: Path
    name: str
    called: str
    """How a command finds it: by name, as the user has it, or by where it lies."""
    photo: Photo

    def image(self, encoder: Encoder) -> Image:
        """Made ready for an encoder."""
        return _loaded(self.path, self.name, encoder)


def given(path: Path, *, called: str | None = None) -> Given:
    """The photo in a file, or a clear refusal; it is called by its name unless told otherwise."""
    _expect_small(path)
    photo = _loaded(path, path.name, _anyone()).photo
    return Given(path=path, name=path.name, called=called or path.name, photo=photo)


def sample(name: str) -> Given:
    """A photo that comes with scikit-image."""
    path = sample_path(name)
    return given(path, called=str(path))


def _loaded(path: Path, name: str, encoder: Encoder) -> Image:
    try:
        with DECODING:
            return load_image(path, encoder, name=name)
    except ImageError as error:
        raise ImageError(str(error).replace(str(path), name)) from error
    finally:
        _give_back_memory()


def _give_back_memory() -> None:
    """Let go of the memory that a large photo took: the C library keeps what is freed, some 350 MB here."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library than GNU's has no such function
            ctypes.CDLL(None).malloc_trim(0)


def _expect_small(path: Path) -> None:
    """Refuse what is too large before it is decoded."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ImageError(f"{path.name}: did not arrive; give it again") from error
    if size > MOST_BYTES:
        raise ImageError(f"{path.name}: {size / 2**20:.0f} MB is more than the {MOST_BYTES // 2**20} MB taken here")
    try:
        with open_picture(path) as picture:
            width, height = picture.size
    except Exception:  # whatever is wrong with it is said when it is decoded
        return
    if width * height > MOST_PIXELS:
        raise ImageError(
            f"{path.name}: {width}×{height} pixels are more than the {MOST_PIXELS // 1_000_000} million taken here; "
            "make it smaller first"
        )


@cache
def _anyone() -> Encoder:
    """An encoder for which any photo can be made ready."""
    return load_encoder(nn.Identity(), device="cpu")
