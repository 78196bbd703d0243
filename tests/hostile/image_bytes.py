"""Functions that write image files byte by byte, such as Pillow would never save."""

import io
import struct
import zlib

import numpy as np
import PIL.Image

SIDE = 32
RAMP = np.linspace(0, 255, SIDE).round().astype(np.uint8)[None].repeat(SIDE, 0)
PIXELS = np.dstack([RAMP, RAMP.T, np.full_like(RAMP, 120)])
"""The picture that nearly every file of the corpus shows."""
PICTURE = PIL.Image.fromarray(PIXELS)
GREY = np.dstack([RAMP] * 3)
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def saved(kind: str, picture: PIL.Image.Image = PICTURE, **options) -> bytes:
    """Return a file as Pillow saves it."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def edited(content: bytes, find: bytes, offset: int, new: bytes) -> bytes:
    """Replace bytes at an offset behind the first occurrence of `find`."""
    start = content.index(find) + offset
    return content[:start] + new + content[start + len(new) :]


# PNG


def chunk(kind: bytes, data: bytes = b"", *, length: int | None = None, checksum: int | None = None) -> bytes:
    """Return a part of a PNG, whose length and checksum may be wrong."""
    length = len(data) if length is None else length
    checksum = zlib.crc32(kind + data) if checksum is None else checksum
    return struct.pack(">I", length) + kind + data + struct.pack(">I", checksum)


def header(width: int = SIDE, height: int = SIDE, depth: int = 8, colour: int = 2, *rest: int) -> bytes:
    """Return the first part of a PNG; `rest` is compression, filter and interlacing."""
    return chunk(b"IHDR", struct.pack(">IIBB", width, height, depth, colour) + bytes(rest or (0, 0, 0)))


def rows(values: np.ndarray, filter_type: int = 0) -> bytes:
    """Return the rows of a PNG before they are compressed."""
    flat = values.reshape(len(values), -1)
    return b"".join(bytes([filter_type]) + row.tobytes() for row in flat)


def png(
    *before: bytes, head: bytes | None = None, values: np.ndarray = PIXELS, data: bytes | None = None, after=()
) -> bytes:
    """Return a PNG with parts before and after its pixels."""
    data = zlib.compress(rows(values)) if data is None else data
    head = header() if head is None else head
    return b"".join((SIGNATURE, head, *before, chunk(b"IDAT", data), *after, chunk(b"IEND")))


def interlaced(values: np.ndarray = PIXELS) -> bytes:
    """Return the rows of the same pixels in seven passes."""
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    data = b"".join(rows(np.ascontiguousarray(values[y::dy, x::dx])) for y, x, dy, dx in passes)
    return png(head=header(SIDE, SIDE, 8, 2, 0, 0, 1), data=zlib.compress(data))


def indexed(palette: bytes, *more: bytes, highest: int = 255) -> bytes:
    """Return a PNG of indices into a palette."""
    indices = (RAMP.astype(int) * highest // 255).astype(np.uint8)
    return png(chunk(b"PLTE", palette), *more, head=header(colour=3), values=indices)


# TIFF

BYTE, ASCII, SHORT, LONG, RATIONAL, FLOAT = 1, 2, 3, 4, 5, 11
WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, OFFSETS, CHANNELS, ROWS, COUNTS = (
    256, 257, 258, 259, 262, 273, 277, 278, 279,
)  # fmt: skip
START = 400
"""Offset of the pixels in the TIFFs of this module."""


def directory(tags: dict[int, tuple[int, int, bytes | int]], at: int, following: int = 0, order: str = "<") -> bytes:
    """Return a directory of a TIFF, given type, count and value of each tag; values of more than four bytes follow."""
    entries, behind = b"", b""
    end = at + 2 + 12 * len(tags) + 4
    for tag, (kind, count, value) in sorted(tags.items()):
        if isinstance(value, int):
            value = struct.pack(order + ("H" if kind == SHORT else "I"), value)
        if len(value) > 4:
            value, behind = struct.pack(order + "I", end + len(behind)), behind + value
        entries += struct.pack(order + "HHI", tag, kind, count) + value.ljust(4, b"\0")
    return struct.pack(order + "H", len(tags)) + entries + struct.pack(order + "I", following) + behind


def basic(channels: int = 3, bits: int = 8, side: int = SIDE) -> dict[int, tuple[int, int, bytes | int]]:
    """Return the tags of a plain picture."""
    return {
        WIDTH: (LONG, 1, side),
        HEIGHT: (LONG, 1, side),
        BITS: (SHORT, channels, struct.pack("<H", bits) * channels),
        COMPRESSION: (SHORT, 1, 1),
        PHOTOMETRIC: (SHORT, 1, 2 if channels > 2 else 1),
        OFFSETS: (LONG, 1, START),
        CHANNELS: (SHORT, 1, channels),
        ROWS: (LONG, 1, side),
        COUNTS: (LONG, 1, side * side * channels * bits // 8),
    }


def tiff(changed=None, *, data: bytes = PIXELS.tobytes(), first: int = 8, following: int = 0, base=None) -> bytes:
    """Return a TIFF whose tags are changed; a tag that is None is left out."""
    tags = {**(basic() if base is None else base), **(changed or {})}
    content = b"II*\0" + struct.pack("<I", first)
    content += directory({tag: value for tag, value in tags.items() if value is not None}, 8, following)
    return content.ljust(START, b"\0") + data


# JPEG


def segment(marker: int, data: bytes = b"", length: int | None = None) -> bytes:
    """Return a segment of a JPEG, whose length may be wrong."""
    return bytes((0xFF, marker)) + struct.pack(">H", len(data) + 2 if length is None else length) + data


def with_segment(*segments: bytes, content: bytes | None = None) -> bytes:
    """Return a JPEG with segments inserted at its beginning."""
    content = saved("JPEG", quality=95) if content is None else content
    return content[:2] + b"".join(segments) + content[2:]


def with_frame(offset: int, new: bytes, content: bytes | None = None, marker: bytes = b"\xff\xc0") -> bytes:
    """Return a JPEG whose frame header is changed at an offset: 4 precision, 5 height, 7 width, 9 number of colours."""
    return edited(saved("JPEG", quality=95) if content is None else content, marker, offset, new)


def exif(tags: dict[int, tuple[int, int, bytes | int]], following: int = 0) -> bytes:
    """Return EXIF data as JPEG, PNG and WebP hold it."""
    return b"II*\0" + struct.pack("<I", 8) + directory(tags, 8, following)


# BMP and GIF


def bmp(
    *, width: int = SIDE, height: int = SIDE, bits: int = 24, compression: int = 0, planes: int = 1, offset: int = 54,
    size: int = 40, colours: int = 0, palette: bytes = b"", data: bytes | None = None,
) -> bytes:  # fmt: skip
    """Return a BMP, by default with the rows of the picture from the bottom up."""
    data = PIXELS[::-1, :, ::-1].tobytes() if data is None else data
    info = struct.pack(
        "<IiiHHIIiiII", size, width, height, planes, bits, compression, len(data), 2835, 2835, colours, 0
    )
    head = struct.pack("<2sIHHI", b"BM", 14 + len(info) + len(palette) + len(data), 0, 0, offset + len(palette))
    return head + info + palette + data


GREYS = b"".join(bytes((level, level, level)) for level in range(256))


def gif_frame(width: int = SIDE, height: int = SIDE, left: int = 0, top: int = 0, flags: int = 0) -> bytes:
    """Return the description of a frame of a GIF."""
    return b"," + struct.pack("<HHHHB", left, top, width, height, flags)


def gif_pixels(values: np.ndarray = RAMP) -> bytes:
    """Return uncompressed pixels of a GIF: codes of nine bits, with the table cleared before it grows."""
    codes: list[int] = []
    for number, value in enumerate(values.ravel().tolist()):
        codes += ([256] if number % 200 == 0 else []) + [value]
    bits = sum(code << 9 * place for place, code in enumerate([*codes, 257]))
    content = bits.to_bytes((9 * (len(codes) + 1) + 7) // 8, "little")
    blocks = (content[at : at + 255] for at in range(0, len(content), 255))
    return b"\x08" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def gif(
    *parts: bytes, width: int = SIDE, height: int = SIDE, palette: bytes | None = GREYS, end: bytes = b";"
) -> bytes:
    """Return a GIF, by default with one frame in greys."""
    flags = 0 if palette is None else 0xF7
    parts = parts or (gif_frame(), gif_pixels())
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0) + (palette or b"") + b"".join(parts) + end


# RIFF and boxes


def riff(*parts: tuple[bytes, bytes], size: int | None = None) -> bytes:
    """Return a WebP made of parts, each a name and its content; its size may be wrong."""
    body = b"WEBP" + b"".join(
        name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for name, data in parts
    )
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def box(kind: bytes, data: bytes = b"", size: int | None = None) -> bytes:
    """Return a box of JPEG 2000 or AVIF; its size may be wrong."""
    return struct.pack(">I", 8 + len(data) if size is None else size) + kind + data
