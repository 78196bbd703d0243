"""A picture, in a file or in memory → its pixels as a person sees them, or a refusal in one line.

Files come from anywhere. A file is looked at in the order of what a look costs: what kind of file it is and how long,
how it begins, how many pixels its header announces; only then are pixels decoded. Whatever Pillow raises on the way is
an ImageError.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import final

import numpy as np
import PIL
import PIL.Image
from PIL import ImageOps, UnidentifiedImageError

from repeat_xai.errors import ImageError, OutputError, RepeatError, lacks_memory, reason
from repeat_xai.files.reading import open_regular

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM", "JPEG2000", "AVIF", "HEIF")
"""What is taken for a picture, where Pillow knows of it; PostScript, say, is a program and not run."""
DEEP_MODES = {"I;16", "I;16L", "I;16B", "I;16N", "I", "F"}
"""Single-channel pictures of more than 8 bits; they are kept as floats so that no grey level is lost."""
SMALLEST_SIDE = 8
MOST_BYTES = 2**29
"""Size of a file: the most pixels that Pillow takes, in RGB of 16 bits and not compressed, need just so many bytes."""
MOST_READS = 100_000
"""Steps in which a file may be read until its size is known: a sound one needs some hundreds, but a damaged one can be
walked byte by byte. Its pixels may take `READS_PER_PIXEL` more: some decoders read byte by byte."""
READS_PER_PIXEL = 4
MOST_SCANS = 100
"""Times that a JPEG may draw over the whole picture to refine it. Encoders do so about ten times; thousands of scans in
a small file would take minutes."""
SCAN = re.compile(rb"\xff\xda\0[\x08\x0a\x0c\x0e][\x01-\x04]")
"""How a scan of a JPEG begins: its marker, its length and its number of colours; other bytes hardly ever look so."""
LONGEST_HEAD = 16
"""Bytes by which a format is known."""
STANDARD_ERROR = 2
SILENCE = threading.Lock()
"""Held while the process writes no standard error, so that two threads do not take it from each other for good."""
# Pillow logs what it thinks of a damaged file: a program that handles logs gets it, others would see stray lines.
logging.getLogger(PIL.__name__).addHandler(logging.NullHandler())


def decode_file(path: Path, name: str) -> tuple[PIL.Image.Image, str]:
    """Return the picture in a file, upright and in RGB or deep grey, and the SHA-256 of the file's content."""
    content = _content(path, name)
    with refusing(name):
        file = _InFewSteps(content)
        picture = open_picture(file)
        _expect_few_pixels(name, picture)
        file.reads_left += READS_PER_PIXEL * picture.width * picture.height
        if picture.format in ("JPEG", "MPO") and len(SCAN.findall(content)) > MOST_SCANS:
            raise ImageError(f"{name}: a JPEG of more than {MOST_SCANS} scans takes too long; save it anew")
        with _silent_libtiff() if picture.format == "TIFF" else nullcontext():
            picture.load()
        return upright(name, picture), hashlib.sha256(content).hexdigest()


def decode_picture(picture: PIL.Image.Image, name: str) -> tuple[PIL.Image.Image, str]:
    """Return a Pillow picture upright and in RGB or deep grey, and the SHA-256 of its pixels."""
    with refusing(name):
        content = repr((picture.mode, picture.size)).encode() + picture.tobytes()
        return upright(name, picture), hashlib.sha256(content).hexdigest()


def open_picture(file: Path | BytesIO) -> PIL.Image.Image:
    """Return the picture in a file, not yet decoded, if it has one of the formats taken."""
    return PIL.Image.open(file, formats=_formats())


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Raise an ImageError that names the picture in place of whatever Pillow raises in this block.

    Decoders meet damaged files with errors of every kind: ValueError, struct.error, SystemError, RecursionError.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except RepeatError:
        raise
    except PIL.Image.DecompressionBombError as error:
        raise _too_many_pixels(name) from error
    except UnidentifiedImageError as error:
        raise _no_picture(name) from error
    except Exception as error:
        if lacks_memory(error):
            raise ImageError(f"{name}: takes more memory than there is; make it smaller first") from error
        raise ImageError(
            f"{name}: the image is damaged or cut short, or of a rare kind ({reason(error)}); "
            "copy it again or save it as a PNG"
        ) from error


def upright(name: str, picture: PIL.Image.Image) -> PIL.Image.Image:
    """Return the picture as meant to be seen: turned by its EXIF tag, on white where transparent, RGB or deep grey."""
    try:
        picture = ImageOps.exif_transpose(picture)
    except Exception:  # a broken EXIF block says nothing of the pixels
        picture = picture.copy()
    check_side(name, *picture.size)
    if picture.mode in DEEP_MODES:
        return _deep(name, picture)
    if picture.mode == "La":  # from which Pillow converts to nothing else
        picture = picture.convert("LA")
    if picture.has_transparency_data:
        page = PIL.Image.new("RGBA", picture.size, "white")
        return PIL.Image.alpha_composite(page, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def check_side(name: str, width: int, height: int) -> None:
    """Refuse a picture too small to locate anything in."""
    if min(width, height) < SMALLEST_SIDE:
        raise ImageError(
            f"{name}: {width}×{height} pixels is too small to locate anything in; "
            f"give an image of at least {SMALLEST_SIDE}×{SMALLEST_SIDE}"
        )


@final
class _InFewSteps(BytesIO):
    """The content of a file, which cannot be read in ever more ever smaller steps."""

    reads_left = MOST_READS

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads_left -= 1
        if self.reads_left < 0:
            raise OSError("it has too many small parts")
        return super().read(size)


def _content(path: Path, name: str) -> bytes:
    """Return what a file holds, if it may be a picture: no other is read beyond its first bytes."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MOST_BYTES:
                limit = MOST_BYTES // 2**20
                raise ImageError(f"{name}: {size / 2**20:,.0f} MB are more than the {limit} taken; make it smaller")
            head = file.read(LONGEST_HEAD)
            if not head:
                raise ImageError(f"{name}: the file is empty; copy it again")
            if not _begins_as_picture(head):
                raise _no_picture(name)
            return head + file.read(MOST_BYTES - len(head))
    except FileNotFoundError as error:
        raise ImageError(f"{name}: no such file") from error
    except OutputError as error:
        if os.path.isdir(path):  # noqa: PTH112 - unlike Path.is_dir, False for a name no file system would take
            raise ImageError(f"{name}: a folder with no JPEG, PNG, WebP, BMP or TIFF in it") from error
        raise ImageError(f"{name}: not a file that can be read; give an image file") from error
    except OSError as error:
        raise ImageError(f"{name}: cannot be read ({error.strerror or reason(error)})") from error
    except MemoryError as error:
        raise ImageError(f"{name}: takes more memory than there is; make it smaller first") from error


@contextmanager
def _silent_libtiff() -> Iterator[None]:
    """Let nothing be written to standard error: libtiff writes there by itself what it thinks of a damaged file."""
    with SILENCE:
        try:
            before = os.dup(STANDARD_ERROR)
        except OSError:  # it is closed already
            yield
            return
        nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.dup2(nothing, STANDARD_ERROR)
            yield
        finally:
            os.dup2(before, STANDARD_ERROR)
            os.close(before)
            os.close(nothing)


@cache
def _formats() -> tuple[str, ...]:
    PIL.Image.init()
    return tuple(name for name in FORMATS if name in PIL.Image.OPEN)


def _begins_as_picture(head: bytes) -> bool:
    """Whether one of the formats taken may begin so."""
    accepts = [PIL.Image.OPEN[name][1] for name in _formats()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return any(accept is None or accept(head.ljust(LONGEST_HEAD, b"\0")) for accept in accepts)


def _expect_few_pixels(name: str, picture: PIL.Image.Image) -> None:
    """Refuse a picture whose header announces more pixels than Pillow would rather decode."""
    width, height = picture.size
    if PIL.Image.MAX_IMAGE_PIXELS is not None and width * height > PIL.Image.MAX_IMAGE_PIXELS:
        raise _too_many_pixels(name)


def _too_many_pixels(name: str) -> ImageError:
    limit = (PIL.Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
    return ImageError(f"{name}: more than {limit} million pixels; make it smaller first")


def _no_picture(name: str) -> ImageError:
    return ImageError(f"{name}: not an image that can be read; give a JPEG, PNG, WebP, BMP or TIFF of 8 or 16 bits")


def _deep(name: str, picture: PIL.Image.Image) -> PIL.Image.Image:
    """Return a 16-bit or float picture as floats in [0, 1]."""
    values = np.asarray(picture).astype(np.float32)
    if not np.isfinite(values).all():
        raise ImageError(f"{name}: has NaN or infinite pixels; mend or fill them first")
    top = 1.0 if picture.mode == "F" else 65535.0
    if values.min() < 0 or values.max() > top:
        found = f"[{values.min():.5g}, {values.max():.5g}]"
        raise ImageError(f"{name}: pixels lie in {found}, not in [0, {top:.0f}]; rescale them first")
    return PIL.Image.fromarray(values / top)
