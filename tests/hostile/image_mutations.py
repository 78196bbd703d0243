"""Random changes of small sound images, each of which is loaded in this process, whose memory is limited.

`python -m hostile.image_mutations FIRST COUNT` prints, as JSON, how many were images, how many were refused in one
line, and which ended in any other way. The number of an image is the seed of its changes.
"""

import faulthandler
import json
import random
import resource
import struct
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

import PIL.Image
import torch
from hostile.image_bytes import (
    GREYS,
    PICTURE,
    SIDE,
    bmp,
    chunk,
    exif,
    gif,
    indexed,
    interlaced,
    png,
    saved,
    segment,
    tiff,
    with_segment,
)
from hostile.verdicts import Verdict, verdict_of_call

import repeat_xai as rx
from repeat_xai.types import Preprocessing

SECONDS = 20.0
MAX_BYTES = 2**30
"""Bytes that the process may take beyond what it has when everything is imported."""
NUMBERS = (0, 1, 2, 3, 7, 8, 255, 256, 32_767, 32_768, 65_535, 65_536, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
"""Values that a length, a size or an offset is set to."""
SMALL = PICTURE.resize((16, 12))
TURNED = exif({0x0112: (3, 1, 6), 0x8769: (4, 1, 60)})
SEEDS = {
    "png": (
        saved("PNG", SMALL),
        interlaced(),
        indexed(GREYS[:96], chunk(b"tRNS", bytes(9)), highest=31),
        png(chunk(b"eXIf", TURNED), chunk(b"zTXt", b"a\0\0" + zlib.compress(b"hello")), chunk(b"gAMA", b"\0\0\0\1")),
        saved("PNG", SMALL, save_all=True, append_images=[SMALL.rotate(9)] * 2),
        saved("PNG", SMALL.convert("I;16")),
        saved("PNG", SMALL.convert("RGBA")),
        saved("PNG", SMALL.convert("1")),
    ),
    "jpeg": (
        saved("JPEG", SMALL),
        saved("JPEG", SMALL, progressive=True),
        saved("JPEG", SMALL.convert("CMYK")),
        saved("JPEG", SMALL.convert("L")),
        with_segment(segment(0xE1, b"Exif\0\0" + TURNED), segment(0xE2, b"ICC_PROFILE\0\1\1" + bytes(40))),
        saved("MPO", SMALL, save_all=True, append_images=[SMALL]),
    ),
    "tiff": (
        tiff(),
        saved("TIFF", SMALL, compression="tiff_lzw"),
        saved("TIFF", SMALL, compression="jpeg"),
        saved("TIFF", SMALL, compression="tiff_adobe_deflate"),
        saved("TIFF", SMALL.convert("1"), compression="group4"),
        saved("TIFF", SMALL, save_all=True, append_images=[SMALL], compression="packbits"),
        saved("TIFF", SMALL.convert("F").point(lambda level: level / 255)),
        saved("TIFF", SMALL.convert("CMYK")),
    ),
    "gif": (gif(), saved("GIF", SMALL), saved("GIF", SMALL, save_all=True, append_images=[SMALL.rotate(9)] * 2)),
    "bmp": (
        bmp(),
        saved("BMP", SMALL.convert("P")),
        bmp(width=8, height=8, compression=1, bits=8, palette=bytes(1024), data=b"\x08\x03\0\0" * 8 + b"\0\1"),
        saved("BMP", SMALL.convert("1")),
    ),
    "webp": (
        saved("WEBP", SMALL),
        saved("WEBP", SMALL.convert("RGBA"), lossless=True),
        saved("WEBP", SMALL, save_all=True, append_images=[SMALL.rotate(9)] * 2),
        saved("WEBP", SMALL, exif=TURNED),
    ),
    "ppm": (
        b"P3 8 8 255\n" + b" ".join(b"%d" % n for n in range(192)),
        b"P1 8 8\n" + b"0 1 " * 32,
        saved("PPM", SMALL),
        saved("PPM", SMALL.convert("F").point(lambda level: level / 255)),
        saved("PPM", SMALL.convert("I").point(lambda level: level * 200)),
    ),
    "jp2": (saved("JPEG2000", SMALL), saved("JPEG2000", SMALL.convert("L"), no_jp2=True)),
    "avif": (saved("AVIF", SMALL, speed=10), saved("AVIF", SMALL.convert("RGBA"), speed=10)),
}


def flip(content: bytearray, rng: random.Random) -> None:
    """Flip up to eight bits, half of the time near the beginning, where sizes and kinds are."""
    for _ in range(rng.randint(1, 8)):
        end = min(len(content), rng.choice((64, len(content))))
        content[rng.randrange(end)] ^= 1 << rng.randrange(8)


def cut(content: bytearray, rng: random.Random) -> None:
    del content[rng.randrange(len(content)) :]


def leave_out(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    del content[start : start + rng.randint(1, 64)]


def double(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    content[start:start] = content[start : start + rng.randint(1, 256)] * rng.choice((1, 1, 50))


def insert(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    content[start:start] = rng.randbytes(rng.randint(1, 32))


def overwrite(content: bytearray, rng: random.Random) -> None:
    start, length = rng.randrange(len(content)), rng.randint(1, 32)
    filling = rng.choice((b"\0", b"\xff", rng.randbytes(1)))
    content[start : start + length] = filling * length


def lie(content: bytearray, rng: random.Random) -> None:
    """Write another number at a random place, in either order of bytes: it may be a size, a length or an offset."""
    form = rng.choice(("<H", ">H", "<I", ">I"))
    size = struct.calcsize(form)
    start = rng.randrange(min(len(content), rng.choice((40, 120, 10**6))))
    content[start : start + size] = struct.pack(form, rng.choice(NUMBERS) % 256**size)


def change_part(content: bytearray, rng: random.Random) -> None:
    """Change, double, move or leave out a part of a PNG, and correct its checksum."""
    parts, at = [], 8
    while at + 12 <= len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        parts.append((bytes(content[at + 4 : at + 8]), bytearray(content[at + 8 : at + 8 + length])))
        at += 12 + length
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(parts))
        kind, data = parts[place]
        what = rng.choice(("flip", "flip", "lie", "lie", "double", "drop", "swap", "rename", "cut"))
        if what == "double":
            parts.insert(place, (kind, bytearray(data)))
        elif what == "drop" and len(parts) > 1:
            parts.pop(place)
        elif what == "swap":
            other = rng.randrange(len(parts))
            parts[place], parts[other] = parts[other], parts[place]
        elif what == "rename":
            names = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"iCCP", b"zTXt", b"iTXt", b"eXIf", b"acTL", b"fcTL", b"pHYs")
            parts[place] = (rng.choice(names), data)
        elif data:
            {"flip": flip, "lie": lie}.get(what, leave_out)(data, rng)
    content[8:] = b"".join(chunk(kind, bytes(data)) for kind, data in parts)


def change_segment(content: bytearray, rng: random.Random) -> None:
    """Change, double or leave out a segment of a JPEG."""
    places = [at for at in range(len(content) - 3) if content[at] == 0xFF and 0xC0 <= content[at + 1] < 0xFF]
    start = rng.choice(places)
    end = start + 2 + int.from_bytes(content[start + 2 : start + 4], "big")
    if rng.random() < 0.3:
        content[start:start] = content[start:end] * rng.choice((1, 1, 120))
    elif rng.random() < 0.4:
        del content[start:end]
    else:
        inside = content[start + 2 : end] or bytearray(1)
        rng.choice((flip, lie))(inside, rng)
        content[start + 2 : end] = inside


CHANGES = (flip, flip, cut, leave_out, double, insert, overwrite, lie, lie, lie)
OF_FORMAT = {"png": change_part, "jpeg": change_segment}


def mutated(number: int) -> bytes:
    """Return the changed image of this number."""
    rng = random.Random(number)
    kind = list(SEEDS)[number % len(SEEDS)]
    content = bytearray(rng.choice(SEEDS[kind]))
    if kind in OF_FORMAT and rng.random() < 0.6:
        OF_FORMAT[kind](content, rng)
    else:
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            rng.choice(CHANGES)(content, rng)
            content = content or bytearray(b"\0")
    return bytes(content)


class UncalledEncoder:
    """An encoder that is never called."""

    name, weights, pool = "looker", "none", "none"
    device, dtype = torch.device("cpu"), torch.float32
    preprocessing = Preprocessing(size=(SIDE, SIDE), resize=(SIDE, SIDE), mean=(0.0,) * 3, std=(1.0,) * 3)

    def __call__(self, images):
        raise AssertionError


def load(path: Path) -> None:
    """Load an image, and check the result."""
    pixels = rx.load_image(path, UncalledEncoder()).pixels
    assert pixels.shape == (3, SIDE, SIDE)
    assert pixels.isfinite().all()
    assert 0 <= pixels.min() <= pixels.max() <= 1


def verdict_of_image(path: Path, number: int) -> Verdict:
    path.write_bytes(mutated(number))
    return verdict_of_call(lambda: load(path), seconds=SECONDS)


def main(first: int, count: int) -> None:
    """Load `count` images and print what became of them; after a crash, the last number printed is its image."""
    faulthandler.enable()
    PIL.Image.MAX_IMAGE_PIXELS = 1_000_000  # an image that a change made large would take long
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_BYTES, used + MAX_BYTES))
    counts: Counter[str] = Counter()
    faults = {}
    with tempfile.TemporaryDirectory() as folder:
        rx.load_image(PICTURE, UncalledEncoder())  # imports must not take the time of the first image
        for number in range(first, first + count):
            print(number, flush=True)
            verdict = verdict_of_image(Path(folder) / "a.png", number)
            counts[verdict.kind] += 1
            if verdict.kind not in ("right", "refused"):
                faults[number] = verdict
    print(json.dumps({"counts": counts, "faults": faults}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
