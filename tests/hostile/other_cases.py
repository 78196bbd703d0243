"""Portable maps, WebP, JPEG 2000 and AVIF files that are wrong or cut."""

import struct

import numpy as np
import PIL.Image
from hostile.image_bytes import PIXELS, SIDE, box, edited, riff, saved
from hostile.image_cases import EITHER, PIXELS_LIMIT, TOO_SMALL, refused, right

BINARY = b"P6 32 32 255\n" + PIXELS.tobytes()
PLAIN = b"P3 32 32 255\n" + " ".join(map(str, PIXELS.ravel())).encode()
WEBP = saved("WEBP", lossless=True)
LOSSY = saved("WEBP", quality=95)
MOVING = saved("WEBP", lossless=True, save_all=True, append_images=[PIL.Image.fromarray(PIXELS[::-1])] * 3)
JP2, STREAM = saved("JPEG2000"), saved("JPEG2000", no_jp2=True)
AVIF = saved("AVIF", quality=95)
FLOATS = np.flipud(PIXELS[..., 0].astype("<f4") / 255)


def extended(width: int, height: int, *parts: tuple[bytes, bytes], flags: int = 0) -> bytes:
    """Return a WebP with a canvas."""
    canvas = bytes([flags, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return riff((b"VP8X", canvas), *parts)


def part(content: bytes, kind: bytes) -> tuple[bytes, bytes]:
    """Return a part of a WebP."""
    start = content.index(kind)
    size = int.from_bytes(content[start + 4 : start + 8], "little")
    return kind, content[start + 8 : start + 8 + size]


def shares(content: bytes, *percent: int) -> dict[str, bytes]:
    return {f"cut_to_{share}_percent": content[: len(content) * share // 100] for share in percent}


MAPS = (
    refused(
        EITHER,
        "PPM",
        maximum_0=b"P6 32 32 0\n" + PIXELS.tobytes(),
        maximum_below_zero=b"P6 32 32 -1\n" + PIXELS.tobytes(),
        maximum_65536=b"P6 32 32 65536\n" + PIXELS.tobytes(),
        columns_below_zero=b"P6 -32 32 255\n" + PIXELS.tobytes(),
        rows_below_zero=b"P6 32 -32 255\n" + PIXELS.tobytes(),
        no_columns=b"P6 0 32 255\n" + PIXELS.tobytes(),
        a_size_in_words=b"P6 wide tall 255\n" + PIXELS.tobytes(),
        a_size_of_a_thousand_digits=b"P6 " + b"9" * 1000 + b" 32 255\n",
        a_size_of_thirty_digits=b"P6 " + b"9" * 30 + b" 32 255\n",
        a_size_in_half_pixels=b"P6 32.5 32 255\n" + PIXELS.tobytes(),
        a_letter_alone=b"P",
        a_kind_alone=b"P6",
        a_size_alone=b"P6 32 32",
        a_kind_that_is_none=b"P9 32 32 255\n" + PIXELS.tobytes(),
        half_the_pixels=BINARY[: len(BINARY) // 2],
        no_pixels=BINARY[:13],
        plain_and_cut=PLAIN[: len(PLAIN) // 2],
        plain_with_values_too_large=PLAIN.replace(b"120", b"999"),
        plain_with_values_below_zero=PLAIN.replace(b"120", b"-20"),
        plain_with_words=PLAIN.replace(b"120", b"abc"),
        plain_with_a_number_of_a_million_digits=b"P3 32 32 255\n" + b"1" * 10**6,
        plain_bits_with_other_digits=b"P1 32 32\n" + b"0123" * 256,
        a_comment_without_end=b"P6 #" + b"a" * 300_000,
        floats_of_scale_0=b"Pf\n32 32\n0\n" + FLOATS.tobytes(),
        floats_of_no_scale=b"Pf\n32 32\nnan\n" + FLOATS.tobytes(),
        floats_of_infinite_scale=b"Pf\n32 32\ninf\n" + FLOATS.tobytes(),
        anything_of_no_kind=b"P7\nWIDTH 32\nHEIGHT 32\nDEPTH 9\nMAXVAL 255\nENDHDR\n" + PIXELS.tobytes(),
    )
    + refused(
        PIXELS_LIMIT,
        "PPM",
        of_two_to_the_31_by_two_to_the_31=b"P6 2147483647 2147483647 255\n",
        plain_of_a_hundred_million_pixels=b"P3 10000 10000 255\n1 2 3",
    )
    + refused("NaN or infinite", "PPM", floats_that_are_none=b"Pf\n32 32\n-1\n" + (FLOATS * np.nan).tobytes())
    + refused(TOO_SMALL, "PPM", of_one_pixel=b"P6 1 1 255\nabc")
    + right(
        "picture",
        "PPM",
        plain_numbers=PLAIN,
        binary=BINARY,
        a_comment_in_the_header=b"P6 # a cat\n32 32 255\n" + PIXELS.tobytes(),
        garbage_behind=BINARY + bytes(999),
    )
    + right("grey", "PPM", within=1, floats=b"Pf\n32 32\n-1\n" + FLOATS.tobytes())
    + right("anything", "PPM", a_maximum_of_1=b"P6 32 32 1\n" + PIXELS.tobytes())
)
WEBPS = (
    refused(
        EITHER, "WebP", **shares(WEBP, 5, 20, 50, 80), **{f"lossy_{k}": v for k, v in shares(LOSSY, 10, 50).items()}
    )
    + refused(
        EITHER,
        "WebP",
        beginning_alone=b"RIFF\0\0\0\0WEBP",
        of_no_size=riff(size=0),
        of_size_0=edited(WEBP, b"RIFF", 4, bytes(4)),
        of_more_than_it_has=edited(WEBP, b"RIFF", 4, b"\xf0\xff\xff\xff"),
        pixels_of_garbage=riff((b"VP8L", b"\x2f" + bytes(99))),
        pixels_with_another_mark=edited(WEBP, b"VP8L", 8, b"\0"),
        lossy_pixels_of_garbage=riff((b"VP8 ", bytes(99))),
        a_canvas_without_pixels=extended(SIDE, SIDE),
        a_canvas_of_sixteen_million_by_sixteen_million=extended(2**24, 2**24, part(WEBP, b"VP8L")),
        a_canvas_larger_than_its_pixels=extended(4000, 4000, part(WEBP, b"VP8L")),
        moving_without_frames=extended(SIDE, SIDE, (b"ANIM", bytes(6)), flags=2),
        moving_and_cut_in_a_later_frame=MOVING[:-40],
        moving_and_cut_in_its_first_frame=MOVING[:90],
        a_frame_outside_its_canvas=extended(
            SIDE, SIDE, (b"ANIM", bytes(6)), (b"ANMF", b"\xff" * 6 + bytes(10) + WEBP[12:]), flags=2
        ),
    )
    + right(
        "picture",
        "WebP",
        plain=WEBP,
        moving=MOVING,
        with_a_canvas=extended(SIDE, SIDE, part(WEBP, b"VP8L")),
        exif_of_garbage=extended(SIDE, SIDE, part(WEBP, b"VP8L"), (b"EXIF", b"garbage"), flags=8),
        a_profile_of_garbage=extended(SIDE, SIDE, (b"ICCP", b"garbage"), part(WEBP, b"VP8L"), flags=32),
        an_unknown_part=extended(SIDE, SIDE, part(WEBP, b"VP8L"), (b"ABCD", bytes(999))),
        garbage_behind=WEBP + bytes(99),
    )
    + right("anything", "WebP", lossy=LOSSY)
)
BOXES = (
    refused(EITHER, "JPEG 2000", **shares(JP2, 2, 10, 20))
    + refused(
        EITHER,
        "JPEG 2000",
        beginning_alone=JP2[:12],
        stream_alone_and_cut=STREAM[:30],
        boxes_of_size_0=JP2[:12] + box(b"jp2h", size=0),
        boxes_of_size_7=JP2[:12] + box(b"jp2h", bytes(99), size=7),
        boxes_of_four_gigabytes=JP2[:12] + box(b"jp2h", bytes(99), size=2**32 - 1),
        boxes_in_each_other_without_end=JP2[:12] + box(b"jp2h", box(b"jp2h", size=2**20) * 9, size=2**20) * 99,
        a_hundred_thousand_boxes=lambda: JP2[:12] + box(b"free") * 200_000,
        no_colours=edited(STREAM, b"\xff\x51", 38, b"\0\0"),
        sixteen_thousand_colours=edited(STREAM, b"\xff\x51", 38, b"\x40\0"),
        tiles_of_no_size=edited(STREAM, b"\xff\x51", 22, bytes(8)),
        garbage_in_the_place_of_tiles=STREAM[: STREAM.index(b"\xff\x90")] + bytes(500),
        no_columns=edited(STREAM, b"\xff\x51", 6, bytes(4)),
    )
    + refused(
        PIXELS_LIMIT, "JPEG 2000", of_two_to_the_31_pixels=edited(STREAM, b"\xff\x51", 6, b"\x7f\xff\xff\xff" * 2)
    )
    + right("picture", "JPEG 2000", plain=JP2, stream_alone=STREAM, garbage_behind=JP2 + bytes(99))
    + refused(EITHER, "AVIF", **shares(AVIF, 3, 8, 30, 60, 90))
    + refused(
        EITHER,
        "AVIF",
        beginning_alone=AVIF[:32],
        garbage=AVIF[:32] + bytes(500),
        boxes_of_size_0=AVIF[:32] + box(b"meta", size=0),
        boxes_of_four_gigabytes=AVIF[:32] + box(b"meta", bytes(99), size=2**32 - 1),
        no_columns=edited(AVIF, b"ispe", 8, bytes(4)),
        of_two_to_the_31_pixels=edited(AVIF, b"ispe", 8, b"\x7f\xff\xff\xff" * 2),
        pixels_of_zeros=AVIF[: AVIF.index(b"mdat") + 4] + bytes(len(AVIF)),
    )
    + right("picture", "AVIF", within=16, plain=AVIF)
    + right(
        "anything",
        "AVIF",
        of_other_size_than_its_pixels=edited(AVIF, b"ispe", 8, struct.pack(">II", 64, 64)),
    )
)
