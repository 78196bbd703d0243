"""PNGs that are damaged, wrong, or unusual but valid."""

import struct
import zlib

import numpy as np
from hostile.image_bytes import (
    GREYS,
    PICTURE,
    PIXELS,
    RAMP,
    SHORT,
    SIDE,
    SIGNATURE,
    chunk,
    edited,
    exif,
    header,
    indexed,
    interlaced,
    png,
    rows,
    saved,
)
from hostile.image_cases import DAMAGED, EITHER, PIXELS_LIMIT, TOO_SMALL, refused, right

PACKED = zlib.compress(rows(PIXELS))
IEND = chunk(b"IEND")
FIRST = chunk(b"IDAT", PACKED[:100])
REST = chunk(b"IDAT", PACKED[100:])
DEEP_GREY = (np.dstack([RAMP, np.full_like(RAMP, 255)]).astype(int) * 257).astype(">u2")
DEEP = (PIXELS.astype(int) * 257).astype(">u2")
ADAM = interlaced()
WHOLE = png()


def bomb(megabytes: int) -> bytes:
    return zlib.compress(bytes(megabytes << 20), 9)


def profile(content: bytes) -> bytes:
    return chunk(b"iCCP", b"icc\0\0" + content)


def grey(depth: int, **options) -> bytes:
    """Return the ramp in fewer bits."""
    levels = RAMP.astype(int) >> (8 - depth)
    per = 8 // depth
    packed = sum(levels[:, place::per] << (8 - depth * (place + 1)) for place in range(per)).astype(np.uint8)
    return png(head=header(depth=depth, colour=0), values=packed, **options)


def frames(*parts: bytes, number: int = 2) -> bytes:
    """Return an animated PNG whose first frame is its picture."""
    control = chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, SIDE, SIDE, 0, 0, 1, 10, 0, 0))
    return png(chunk(b"acTL", struct.pack(">II", number, 0)), control, after=parts)


def second(width: int, left: int) -> bytes:
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", 1, width, SIDE, left, 0, 1, 10, 0, 0))


STRUCTURE = refused(
    EITHER,
    "PNG",
    chromaticities_cut=png(chunk(b"cHRM", b"abc")),
    palette_of_300_colours=indexed(GREYS + bytes(132)),
    filtering_of_no_kind=png(head=header(SIDE, SIDE, 8, 2, 0, 1, 0)),
    wrong_checksum_of_a_text=png(chunk(b"tEXt", b"a\0b", checksum=1)),
    signature_alone=SIGNATURE,
    line_ends_changed_in_transfer=WHOLE.replace(b"\r\n", b"\n"),
    no_header=SIGNATURE + chunk(b"IDAT", PACKED) + IEND,
    header_cut=SIGNATURE + chunk(b"IHDR", bytes(5)) + IEND,
    header_empty=SIGNATURE + chunk(b"IHDR") + IEND,
    header_alone=SIGNATURE + header(),
    header_with_a_wrong_checksum=edited(WHOLE, b"IHDR", 17, b"\0\0\0\0"),
    no_pixels=SIGNATURE + header() + IEND,
    pixels_empty=png(data=b""),
    pixels_cut=png(data=PACKED[: len(PACKED) // 2]),
    pixels_not_compressed=png(data=rows(PIXELS)),
    pixels_of_zeros=png(data=bytes(500)),
    filter_of_no_kind=png(data=zlib.compress(rows(PIXELS, filter_type=9))),
    length_too_short=SIGNATURE + header() + chunk(b"IDAT", PACKED, length=40) + IEND,
    chunk_of_no_letters=SIGNATURE + header() + chunk(b"\0\1\2\3", b"abc") + chunk(b"IDAT", PACKED) + IEND,
    second_half_missing=SIGNATURE + header() + FIRST + IEND,
    ended_before_pixels=SIGNATURE + header() + IEND + chunk(b"IDAT", PACKED),
    interlaced_and_cut=ADAM[: len(ADAM) // 2],
    bit_depth_of_3=png(head=header(depth=3)),
    bit_depth_of_0=png(head=header(depth=0)),
    bit_depth_of_64=png(head=header(depth=64)),
    colour_type_1=png(head=header(colour=1)),
    colour_type_5=png(head=header(colour=5)),
    colour_type_255=png(head=header(colour=255)),
    no_columns=png(head=header(width=0)),
    no_rows=png(head=header(height=0)),
    more_columns_than_pixels=png(head=header(width=4000, height=4000)),
    chunk_of_a_huge_length_first=SIGNATURE + chunk(b"IHDR", b"", length=2**31) + WHOLE[8:],
)
PARTS = refused(
    EITHER,
    "PNG",
    transparency_longer_than_its_palette=indexed(GREYS, chunk(b"tRNS", bytes(300))),
    transparency_of_rgb_with_three_bytes=png(chunk(b"tRNS", b"abc")),
    transparency_of_grey_with_one_byte=png(chunk(b"tRNS", b"a"), head=header(colour=0), values=RAMP),
    text_bomb_of_64_megabytes=png(chunk(b"zTXt", b"Comment\0\0" + bomb(64))),
    international_text_bomb=png(chunk(b"iTXt", b"Comment\0\1\0\0\0" + bomb(64))),
    many_texts_of_a_megabyte=lambda: png(*[chunk(b"zTXt", b"a\0\0" + zlib.compress(b"x" * 2**20, 9))] * 80),
    profile_bomb=png(profile(bomb(64))),
    profile_compressed_in_no_way=png(chunk(b"iCCP", b"icc\0\7garbage")),
    text_compressed_in_no_way=png(chunk(b"zTXt", b"Comment\0\7garbage")),
    resolution_cut=png(chunk(b"pHYs", b"abc")),
    gamma_cut=png(chunk(b"gAMA", b"a")),
    rendering_empty=png(chunk(b"sRGB")),
    animation_control_cut=png(chunk(b"acTL", b"a")),
    frame_control_cut=png(chunk(b"acTL", struct.pack(">II", 2, 0)), chunk(b"fcTL", b"a")),
    frame_beyond_the_picture=png(
        chunk(b"acTL", struct.pack(">II", 2, 0)),
        chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, SIDE, SIDE, 9, 9, 1, 10, 0, 0)),
    ),
    frames_in_no_order=png(
        chunk(b"acTL", struct.pack(">II", 2, 0)),
        chunk(b"fcTL", struct.pack(">IIIIIHHBB", 7, SIDE, SIDE, 0, 0, 1, 10, 0, 0)),
    ),
)
SIZES = (
    refused(
        PIXELS_LIMIT,
        "PNG",
        of_a_hundred_million_pixels=png(head=header(10_000, 10_000)),
        of_a_hundred_million_pixels_in_one_bit=png(head=header(10_000, 10_000, 1, 0)),
        of_sixty_thousand_by_sixty_thousand=png(head=header(60_000, 60_000)),
        of_two_to_the_31_columns=png(head=header(2**31 - 1, 9)),
        of_two_to_the_31_by_two_to_the_31=png(head=header(2**31 - 1, 2**31 - 1)),
    )
    + refused(
        TOO_SMALL,
        "PNG",
        of_one_pixel=png(head=header(1, 1), values=PIXELS[:1, :1]),
        of_seven_by_seven=png(head=header(7, 7), values=PIXELS[:7, :7]),
        of_one_by_sixty_thousand=png(head=header(1, 60_000), values=np.zeros((60_000, 1, 3), np.uint8)),
        of_sixty_thousand_by_one=png(head=header(60_000, 1), values=np.zeros((1, 60_000, 3), np.uint8)),
    )
    + right(
        "anything",
        "PNG",
        of_eight_by_eight=png(head=header(8, 8), values=np.ascontiguousarray(PIXELS[:8, :8])),
        of_eight_by_sixty_thousand=png(head=header(8, 60_000), values=np.zeros((60_000, 8, 3), np.uint8)),
    )
)
ODD = right(
    "picture",
    "PNG",
    plain=WHOLE,
    pixels_with_a_wrong_checksum=WHOLE[:-16] + b"\0\0\0\0" + IEND,
    length_beyond_the_file=SIGNATURE + header() + chunk(b"IDAT", PACKED, length=10**6) + IEND,
    length_of_four_gigabytes=SIGNATURE + header() + chunk(b"IDAT", PACKED, length=2**32 - 1) + IEND,
    interlaced=ADAM,
    pixels_in_parts_of_one_byte=png(data=b"").replace(
        chunk(b"IDAT"), b"".join(chunk(b"IDAT", PACKED[at : at + 1]) for at in range(len(PACKED)))
    ),
    empty_parts_between_pixels=SIGNATURE + header() + FIRST + chunk(b"IDAT") * 9 + REST + IEND,
    more_rows_than_announced=png(data=zlib.compress(rows(np.concatenate((PIXELS, PIXELS))))),
    garbage_behind_the_end=WHOLE + bytes(range(256)) * 40,
    another_picture_behind_the_end=WHOLE + WHOLE,
    sixteen_bits_a_channel=png(head=header(depth=16), values=DEEP),
    no_end=WHOLE[: -len(IEND)],
    two_headers=png(header()),
    unknown_part=png(chunk(b"prVt", bytes(999))),
    ten_thousand_unknown_parts=png(*[chunk(b"prVt")] * 10_000),
    text_without_a_name=png(chunk(b"tEXt", b"no null byte")),
    text_of_every_byte=png(chunk(b"tEXt", bytes(range(255, -1, -1)) * 9)),
    text_compressed_and_cut=png(chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"hello")[:-3])),
    profile_of_garbage=png(profile(zlib.compress(b"no profile"))),
    profile_cut=png(profile(zlib.compress(bytes(99))[:-4])),
    exif_of_garbage=png(chunk(b"eXIf", b"garbage" * 9)),
    exif_empty=png(chunk(b"eXIf")),
    exif_that_leads_to_itself=png(chunk(b"eXIf", exif({0x8769: (4, 1, 8), 0x0112: (SHORT, 1, 1)}, following=8))),
    orientation_0=png(chunk(b"eXIf", exif({0x0112: (SHORT, 1, 0)}))),
    orientation_9=png(chunk(b"eXIf", exif({0x0112: (SHORT, 1, 9)}))),
    orientation_65535=png(chunk(b"eXIf", exif({0x0112: (SHORT, 1, 65535)}))),
    orientation_in_words=png(chunk(b"eXIf", exif({0x0112: (2, 6, b"upside")}))),
    orientation_that_lies_beyond_the_file=png(chunk(b"eXIf", exif({0x0112: (4, 9999, 2**31)}))),
    orientation_of_a_thousand_numbers=png(chunk(b"eXIf", exif({0x0112: (SHORT, 1000, b"\1\0" * 1000)}))),
    xmp_that_is_no_xml=png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<<<tiff:Orientation>x")),
    animated=frames(second(SIDE, 0), chunk(b"fdAT", struct.pack(">I", 2) + PACKED)),
    animated_with_a_later_frame_cut=frames(second(SIDE, 0), chunk(b"fdAT", struct.pack(">I", 2) + PACKED[:50])),
    animated_with_a_later_frame_outside=frames(second(SIDE, 999), chunk(b"fdAT", struct.pack(">I", 2) + PACKED)),
    animated_with_frames_that_are_not_there=frames(number=2**31 - 1),
    animated_without_frames=png(chunk(b"acTL", struct.pack(">II", 0, 0))),
) + right(
    "grey",
    "PNG",
    within=1,
    grey_of_sixteen_bits=png(head=header(depth=16, colour=0), values=DEEP_GREY[..., 0].copy()),
    grey_and_alpha_of_sixteen_bits=png(head=header(depth=16, colour=4), values=DEEP_GREY),
    palette=indexed(GREYS),
)
MILD = right(
    "anything",
    "PNG",
    one_row_too_few=png(data=zlib.compress(rows(PIXELS[:-1]))),
    indices_beyond_the_palette=indexed(GREYS[:30]),
    palette_of_five_bytes=indexed(b"abcde"),
    palette_empty=indexed(b""),
    no_palette=png(head=header(colour=3), values=RAMP),
    one_bit=grey(1),
    two_bits=grey(2),
    four_bits=grey(4),
    transparency_empty=indexed(GREYS, chunk(b"tRNS")),
    transparency_of_the_first_colours=indexed(GREYS, chunk(b"tRNS", bytes(9))),
    transparency_of_one_grey=png(chunk(b"tRNS", b"\0\0"), head=header(colour=0), values=RAMP),
    transparency_of_one_colour=png(chunk(b"tRNS", bytes(6))),
    compression_of_no_kind=png(head=header(SIDE, SIDE, 8, 2, 1, 0, 0)),
)
CLEAR = right("white", "PNG", clear=saved("PNG", PICTURE.convert("RGBA").point(lambda level: 0)))
CUT = refused(
    DAMAGED, "PNG", **{f"cut_to_{share}_percent": WHOLE[: len(WHOLE) * share // 100] for share in range(8, 97, 8)}
)
PNGS = [*STRUCTURE, *PARTS, *SIZES, *ODD, *MILD, *CLEAR, *CUT]
