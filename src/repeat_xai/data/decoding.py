"""Functions that decode image files safely into the pixels that a person would see, or refuse them in one line.

Image files may come from anywhere. A file is checked in the order of what each check costs: what kind of file it is and
how long, its first bytes, the number of pixels that its header announces. Only then are pixels decoded. Every error
that Pillow raises on the way becomes an ImageError that names the image.
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

from repeat_xai.data.image_files import FORMAT_NAMES
from repeat_xai.errors import ImageError, OutputError, RepeatError, lacks_memory, reason
from repeat_xai.files.reading import open_regular

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM", "JPEG2000", "AVIF", "HEIF")
"""Formats that are decoded, where the installed Pillow knows them. Others may be unsafe: PostScript is a program."""
DEEP_MODES = {"I;16", "I;16L", "I;16B", "I;16N", "I", "F"}
"""Modes of Pillow for one channel of more than 8 bits; such pictures become floats, so that no grey level is lost."""
MIN_SIDE = 8
"""Shortest side of an image, in pixels."""
MAX_FILE_BYTES = 2**29
"""Largest size of an image file: what the most pixels that Pillow accepts take uncompressed, in RGB of 16 bits."""
MAX_READS = 100_000
"""Number of reads in which the header of a file may be read. A sound file needs some hundreds, but a damaged one can
make a decoder walk through it byte by byte."""
READS_PER_PIXEL = 4
"""Number of further reads for each pixel, since some decoders read pixels byte by byte."""
MAX_SCANS = 100
"""Number of times that a JPEG may draw over the whole picture to refine it. Programs that write JPEGs do so about ten
times; thousands of scans in a small file would take minutes."""
SCAN = re.compile(rb"\xff\xda\0[\x08\x0a\x0c\x0e][\x01-\x04]")
"""Beginning of a scan of a JPEG: its marker, its length and its number of colours. Other data rarely looks like it."""
HEAD_BYTES = 16
"""Number of first bytes by which a format is recognised."""
STANDARD_ERROR = 2
"""File descriptor of standard error."""
STANDARD_ERROR_LOCK = threading.Lock()
"""Lock that is held while standard error is closed, so that two threads do not restore it in the wrong order."""
# Pillow logs details of damaged files. A program that handles logs gets them; others would see stray lines.
logging.getLogger(PIL.__name__).addHandler(logging.NullHandler())


def decode_file(path: Path, name: str) -> tuple[PIL.Image.Image, str]:
    """Return the picture in a file, upright and in RGB or deep grey, and the SHA-256 of the file's content."""
    content = _content(path, name)
    with naming_errors(name):
        file = _LimitedReads(content)
        picture = open_picture(file)
        _expect_few_pixels(name, picture)
        file.reads_left += READS_PER_PIXEL * picture.width * picture.height
        if picture.format in ("JPEG", "MPO") and len(SCAN.findall(content)) > MAX_SCANS:
            raise ImageError(f"{name}: a JPEG of more than {MAX_SCANS} scans takes too long to decode; save it again")
        with _silenced_standard_error() if picture.format == "TIFF" else nullcontext():
            picture.load()
        return upright(name, picture), hashlib.sha256(content).hexdigest()


def decode_picture(picture: PIL.Image.Image, name: str) -> tuple[PIL.Image.Image, str]:
    """Return a Pillow picture upright and in RGB or deep grey, and the SHA-256 of its pixels."""
    with naming_errors(name):
        content = repr((picture.mode, picture.size)).encode() + picture.tobytes()
        return upright(name, picture), hashlib.sha256(content).hexdigest()


def open_picture(file: Path | BytesIO) -> PIL.Image.Image:
    """Open the picture in a file without decoding it; a format that is not in `FORMATS` raises Pillow's own error."""
    return PIL.Image.open(file, formats=_formats())


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Raise an ImageError that names the image in place of any error of Pillow in this block.

    Decoders raise errors of many classes for damaged files: ValueError, struct.error, SystemError, RecursionError.
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
            raise ImageError(f"{name}: needs more memory than is available; make it smaller first") from error
        raise ImageError(
            f"{name}: the image is damaged or cut short, or of a rare kind ({reason(error)}); "
            "copy it again or save it as a PNG"
        ) from error


def upright(name: str, picture: PIL.Image.Image) -> PIL.Image.Image:
    """Return the picture as a person sees it: turned by its EXIF tag, white where transparent, in RGB or deep grey."""
    try:
        picture = ImageOps.exif_transpose(picture)
    except Exception:  # a broken EXIF block does not mean that the pixels are damaged
        picture = picture.copy()
    expect_large_enough(name, *picture.size)
    if picture.mode in DEEP_MODES:
        return _deep(name, picture)
    if picture.mode == "La":  # Pillow converts this mode to no other
        picture = picture.convert("LA")
    if picture.has_transparency_data:
        white = PIL.Image.new("RGBA", picture.size, "white")
        return PIL.Image.alpha_composite(white, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def expect_large_enough(name: str, width: int, height: int) -> None:
    """Raise an ImageError if an image is too small to locate anything in."""
    if min(width, height) < MIN_SIDE:
        raise ImageError(
            f"{name}: {width}×{height} pixels is too small to locate anything in; "
            f"give an image of at least {MIN_SIDE}×{MIN_SIDE}"
        )


@final
class _LimitedReads(BytesIO):
    """The content of a file, which can only be read a limited number of times."""

    reads_left = MAX_READS

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads_left -= 1
        if self.reads_left < 0:
            raise OSError("it has too many small parts")
        return super().read(size)


def _content(path: Path, name: str) -> bytes:
    """Return the content of a file that begins as an image does; any other file is not read beyond its first bytes."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                limit = MAX_FILE_BYTES // 2**20
                raise ImageError(f"{name}: {size / 2**20:,.0f} MB is more than the {limit} MB allowed; make it smaller")
            head = file.read(HEAD_BYTES)
            if not head:
                raise ImageError(f"{name}: the file is empty; copy it again")
            if not _has_known_head(head):
                raise _no_picture(name)
            return head + file.read(MAX_FILE_BYTES - len(head))
    except FileNotFoundError as error:
        raise ImageError(f"{name}: no such file") from error
    except OutputError as error:
        if os.path.isdir(path):  # noqa: PTH112 - unlike Path.is_dir, False for a name no file system would take
            raise ImageError(f"{name}: a folder with no {FORMAT_NAMES} in it") from error
        raise ImageError(f"{name}: not a file that can be read; give an image file") from error
    except OSError as error:
        raise ImageError(f"{name}: cannot be read ({error.strerror or reason(error)})") from error
    except MemoryError as error:
        raise ImageError(f"{name}: needs more memory than is available; make it smaller first") from error


@contextmanager
def _silenced_standard_error() -> Iterator[None]:
    """Discard what is written to standard error in this block: libtiff reports damaged files there by itself."""
    with STANDARD_ERROR_LOCK:
        try:
            original = os.dup(STANDARD_ERROR)
        except OSError:  # it is closed already
            yield
            return
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.dup2(null, STANDARD_ERROR)
            yield
        finally:
            os.dup2(original, STANDARD_ERROR)
            os.close(original)
            os.close(null)


@cache
def _formats() -> tuple[str, ...]:
    """Return the formats of `FORMATS` that the installed Pillow can open."""
    PIL.Image.init()
    return tuple(name for name in FORMATS if name in PIL.Image.OPEN)


def _has_known_head(head: bytes) -> bool:
    """Return whether a file with these first bytes may have one of the formats that are decoded."""
    accepts = [PIL.Image.OPEN[name][1] for name in _formats()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return any(accept is None or accept(head.ljust(HEAD_BYTES, b"\0")) for accept in accepts)


def _expect_few_pixels(name: str, picture: PIL.Image.Image) -> None:
    """Raise an ImageError if the header announces so many pixels that Pillow would warn of them."""
    width, height = picture.size
    if PIL.Image.MAX_IMAGE_PIXELS is not None and width * height > PIL.Image.MAX_IMAGE_PIXELS:
        raise _too_many_pixels(name)


def _too_many_pixels(name: str) -> ImageError:
    limit = (PIL.Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
    return ImageError(f"{name}: more than {limit} million pixels; make it smaller first")


def _no_picture(name: str) -> ImageError:
    return ImageError(f"{name}: not an image that can be read; give a {FORMAT_NAMES} of 8 or 16 bits")


def _deep(name: str, picture: PIL.Image.Image) -> PIL.Image.Image:
    """Return a 16-bit or float picture as floats in [0, 1]."""
    values = np.asarray(picture).astype(np.float32)
    if not np.isfinite(values).all():
        raise ImageError(f"{name}: has NaN or infinite pixels; repair or fill them first")
    top = 1.0 if picture.mode == "F" else 65535.0
    if values.min() < 0 or values.max() > top:
        extent = f"[{values.min():.5g}, {values.max():.5g}]"
        raise ImageError(f"{name}: pixels lie in {extent}, not in [0, {top:.0f}]; rescale them first")
    return PIL.Image.fromarray(values / top)
