"""Change small sound images at random, by a seed, and load each in this process, whose memory is bounded.

`python -m hostile.image_mutations FIRST COUNT` prints, as JSON, how many were images, how many were refused in one
line, and which ended in any other way.
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
from hostile.verdicts import Verdict, called

import repeat_xai as rx
from repeat_xai.types import Preprocessing

SECONDS = 20.0
MOST_MEMORY = 2**30
"""Bytes that the process may take beyond what it has when everything is imported."""
NUMBERS = (0, 1, 2, 3, 7, 8, 255, 256, 32_767, 32_768, 65_535, 65_536, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
"""What a length, a size or an offset is set to."""
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


def flip(content: bytearray, chance: random.Random) -> None:
    """Flip up to eight bits, half of the time near the beginning, where sizes and kinds are."""
    for _ in range(chance.randint(1, 8)):
        end = min(len(content), chance.choice((64, len(content))))
        content[chance.randrange(end)] ^= 1 << chance.randrange(8)


def cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def leave_out(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    del content[start : start + chance.randint(1, 64)]


def double(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    content[start:start] = content[start : start + chance.randint(1, 256)] * chance.choice((1, 1, 50))


def insert(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    content[start:start] = chance.randbytes(chance.randint(1, 32))


def overwrite(content: bytearray, chance: random.Random) -> None:
    start, length = chance.randrange(len(content)), chance.randint(1, 32)
    filling = chance.choice((b"\0", b"\xff", chance.randbytes(1)))
    content[start : start + length] = filling * length


def lie(content: bytearray, chance: random.Random) -> None:
    """Write another number where one may be: sizes, lengths and offsets, in either order of bytes."""
    form = chance.choice(("<H", ">H", "<I", ">I"))
    size = struct.calcsize(form)
    start = chance.randrange(min(len(content), chance.choice((40, 120, 10**6))))
    content[start : start + size] = struct.pack(form, chance.choice(NUMBERS) % 256**size)


def change_part(content: bytearray, chance: random.Random) -> None:
    """Change a part of a PNG, and make its checksum right again; double it, move it or leave it out."""
    parts, at = [], 8
    while at + 12 <= len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        parts.append((bytes(content[at + 4 : at + 8]), bytearray(content[at + 8 : at + 8 + length])))
        at += 12 + length
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(parts))
        kind, data = parts[place]
        what = chance.choice(("flip", "flip", "lie", "lie", "double", "drop", "swap", "rename", "cut"))
        if what == "double":
            parts.insert(place, (kind, bytearray(data)))
        elif what == "drop" and len(parts) > 1:
            parts.pop(place)
        elif what == "swap":
            other = chance.randrange(len(parts))
            parts[place], parts[other] = parts[other], parts[place]
        elif what == "rename":
            names = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"iCCP", b"zTXt", b"iTXt", b"eXIf", b"acTL", b"fcTL", b"pHYs")
            parts[place] = (chance.choice(names), data)
        elif data:
            {"flip": flip, "lie": lie}.get(what, leave_out)(data, chance)
    content[8:] = b"".join(chunk(kind, bytes(data)) for kind, data in parts)


def change_segment(content: bytearray, chance: random.Random) -> None:
    """Double a segment of a JPEG, leave it out, or change what is in it."""
    places = [at for at in range(len(content) - 3) if content[at] == 0xFF and 0xC0 <= content[at + 1] < 0xFF]
    start = chance.choice(places)
    end = start + 2 + int.from_bytes(content[start + 2 : start + 4], "big")
    if chance.random() < 0.3:
        content[start:start] = content[start:end] * chance.choice((1, 1, 120))
    elif chance.random() < 0.4:
        del content[start:end]
    else:
        inside = content[start + 2 : end] or bytearray(1)
        chance.choice((flip, lie))(inside, chance)
        content[start + 2 : end] = inside


CHANGES = (flip, flip, cut, leave_out, double, insert, overwrite, lie, lie, lie)
OF_FORMAT = {"png": change_part, "jpeg": change_segment}


def mutated(number: int) -> bytes:
    """The image of this number."""
    chance = random.Random(number)
    kind = list(SEEDS)[number % len(SEEDS)]
    content = bytearray(chance.choice(SEEDS[kind]))
    if kind in OF_FORMAT and chance.random() < 0.6:
        OF_FORMAT[kind](content, chance)
    else:
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            chance.choice(CHANGES)(content, chance)
            content = content or bytearray(b"\0")
    return bytes(content)


class Looker:
    """An encoder that is never called."""

    name, weights, pool = "looker", "none", "none"
    device, dtype = torch.device("cpu"), torch.float32
    preprocessing = Preprocessing(size=(SIDE, SIDE), resize=(SIDE, SIDE), mean=(0.0,) * 3, std=(1.0,) * 3)

    def __call__(self, images):
        raise AssertionError


def load(path: Path) -> None:
    """Load an image, and check that it is one."""
    pixels = rx.load_image(path, Looker()).pixels
    assert pixels.shape == (3, SIDE, SIDE)
    assert pixels.isfinite().all()
    assert 0 <= pixels.min() <= pixels.max() <= 1


def tried(path: Path, number: int) -> Verdict:
    path.write_bytes(mutated(number))
    return called(lambda: load(path), seconds=SECONDS)


def main(first: int, count: int) -> None:
    """Load so many images and print what became of them; the last number printed is that of a crash."""
    faulthandler.enable()
    PIL.Image.MAX_IMAGE_PIXELS = 1_000_000  # so that an image that a change made large takes little time
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, used + MOST_MEMORY))
    counts: Counter[str] = Counter()
    faults = {}
    with tempfile.TemporaryDirectory() as folder:
        rx.load_image(PICTURE, Looker())  # what is imported late takes none of the first image's time
        for number in range(first, first + count):
            print(number, flush=True)
            verdict = tried(Path(folder) / "a.png", number)
            counts[verdict.kind] += 1
            if verdict.kind not in ("right", "refused"):
                faults[number] = verdict
    print(json.dumps({"counts": counts, "faults": faults}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
