"""TIFFs with wrong tags, and BMPs and GIFs that are wrong."""

import numpy as np
from hostile.image_bytes import (
    BITS,
    BYTE,
    CHANNELS,
    COMPRESSION,
    COUNTS,
    FLOAT,
    GREYS,
    HEIGHT,
    LONG,
    OFFSETS,
    PHOTOMETRIC,
    PICTURE,
    PIXELS,
    RAMP,
    ROWS,
    SHORT,
    SIDE,
    START,
    WIDTH,
    basic,
    bmp,
    gif,
    gif_frame,
    gif_pixels,
    saved,
    tiff,
)
from hostile.image_cases import EITHER, PIXELS_LIMIT, TOO_SMALL, refused, right

SAMPLES = 339
"""The tag that says whether values are floats."""
SHARES = RAMP.astype("<f4") / 255
PACKED = saved("TIFF", compression="tiff_lzw")
JPEG = saved("TIFF", compression="jpeg", quality=95)


def floats(values: np.ndarray) -> bytes:
    """Return a TIFF of floats in one channel."""
    return tiff({SAMPLES: (SHORT, 1, 3)}, base=basic(1, 32), data=values.astype("<f4").tobytes())


def with_pixel(value: float) -> bytes:
    changed = SHARES.copy()
    changed[3, 4] = value
    return floats(changed)


def deep(values: np.ndarray, bits: int = 16, signed: bool = False) -> bytes:
    return tiff({SAMPLES: (SHORT, 1, 2 if signed else 1)}, base=basic(1, bits), data=values.tobytes())


LYING = refused(
    EITHER,
    "TIFF",
    a_width_of_the_type_byte=tiff({WIDTH: (BYTE, 1, bytes([SIDE]))}),
    beginning_alone=b"II*\0",
    directory_behind_the_end=tiff(first=10**6),
    directory_at_four_gigabytes=tiff(first=2**32 - 1),
    directory_at_0=tiff(first=0),
    directory_of_65535_tags=b"II*\0\x08\0\0\0\xff\xff" + bytes(99),
    directory_without_tags=b"II*\0\x08\0\0\0" + bytes(99),
    no_width=tiff({WIDTH: None}),
    no_height=tiff({HEIGHT: None}),
    no_columns=tiff({WIDTH: (LONG, 1, 0)}),
    width_in_words=tiff({WIDTH: (2, 4, b"wide")}),
    width_by_zero=tiff({WIDTH: (5, 1, bytes(8))}),
    no_offsets=tiff({OFFSETS: None}),
    offsets_behind_the_end=tiff({OFFSETS: (LONG, 1, 10**6)}),
    offsets_at_four_gigabytes=tiff({OFFSETS: (LONG, 1, 2**32 - 1)}),
    offsets_in_words=tiff({OFFSETS: (2, 4, b"here")}),
    two_billion_offsets=tiff({OFFSETS: (LONG, 2**31, START)}),
    a_compression_of_no_kind=tiff({COMPRESSION: (SHORT, 1, 12_345)}),
    compressed_by_LZW_it_says=tiff({COMPRESSION: (SHORT, 1, 5)}),
    compressed_by_JPEG_it_says=tiff({COMPRESSION: (SHORT, 1, 7)}),
    compressed_by_Deflate_it_says=tiff({COMPRESSION: (SHORT, 1, 8)}),
    compressed_as_a_fax_it_says=tiff({COMPRESSION: (SHORT, 1, 4)}),
    colours_of_no_kind=tiff({PHOTOMETRIC: (SHORT, 1, 999)}),
    seventeen_channels=tiff({CHANNELS: (SHORT, 1, 17)}),
    no_channels=tiff({CHANNELS: (SHORT, 1, 0)}),
    nine_bits=tiff({BITS: (SHORT, 3, b"\x09\0" * 3)}),
    bits_that_differ=tiff({BITS: (SHORT, 3, b"\x08\0\x10\0\x20\0")}),
    sixty_five_thousand_bits=tiff({BITS: (SHORT, 3, b"\xff\xff" * 3)}),
    half_the_pixels=tiff(data=PIXELS.tobytes()[: SIDE * SIDE]),
    tiles_without_a_size=tiff({324: (LONG, 1, START), OFFSETS: None}),
    tiles_of_no_size=tiff({322: (LONG, 1, 0), 323: (LONG, 1, 0), 324: (LONG, 1, START), OFFSETS: None}),
    YCbCr_without_compression=tiff({PHOTOMETRIC: (SHORT, 1, 6)}),
    of_big_files_and_cut=b"II+\0\x08\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f",
    LZW_cut=PACKED[: len(PACKED) // 2],
    LZW_of_garbage=PACKED[:60] + b"\xa5" * 200 + PACKED[260:],
)
VALUES = (
    refused(
        "NaN or infinite",
        "TIFF",
        one_pixel_that_is_no_number=with_pixel(float("nan")),
        one_pixel_that_is_infinite=with_pixel(float("inf")),
        one_pixel_that_is_minus_infinite=with_pixel(float("-inf")),
    )
    + refused(
        "rescale them first",
        "TIFF",
        floats_above_one=floats(SHARES * 255),
        floats_below_zero=floats(SHARES - 1),
        one_huge_float=with_pixel(3e38),
        whole_numbers_of_32_bits=deep(RAMP.astype("<i4") * 2**22, 32, signed=True),
        whole_numbers_below_zero=deep(RAMP.astype("<i4") - 9, 32, signed=True),
    )
    + right(
        "grey",
        "TIFF",
        within=1,
        floats=floats(SHARES),
        sixteen_bits=deep(RAMP.astype("<u2") * 257),
        numbers_of_32_bits=deep(RAMP.astype("<i4") * 257, 32, signed=True),
        eight_bits=deep(RAMP, 8),
    )
    + right(
        "anything",
        "TIFF",
        CIELAB=tiff({PHOTOMETRIC: (SHORT, 1, 8)}),
        the_least_floats=floats(np.full((SIDE, SIDE), 1e-45)),
        floats_all_zero=floats(SHARES * 0),
        sixteen_bits_all_65535=deep(np.full((SIDE, SIDE), 65_535, "<u2")),
        black_that_means_white=tiff({PHOTOMETRIC: (SHORT, 1, 0)}, base=basic(1), data=RAMP.tobytes()),
        alpha_over_all=tiff({338: (SHORT, 1, 2)}, base=basic(4), data=np.dstack([PIXELS, RAMP]).tobytes()),
        alpha_multiplied=tiff({338: (SHORT, 1, 1)}, base=basic(4), data=np.dstack([PIXELS // 2, RAMP]).tobytes()),
        cmyk=saved("TIFF", PICTURE.convert("CMYK")),
    )
    + refused(
        PIXELS_LIMIT,
        "TIFF",
        of_two_to_the_31_columns=tiff({WIDTH: (LONG, 1, 2**31)}),
        of_a_hundred_million_pixels=tiff({WIDTH: (LONG, 1, 10_000), HEIGHT: (LONG, 1, 10_000)}),
        of_2_to_the_32_by_2_to_the_32=tiff({WIDTH: (LONG, 1, 2**32 - 1), HEIGHT: (LONG, 1, 2**32 - 1)}),
    )
    + refused(TOO_SMALL, "TIFF", of_one_pixel=saved("TIFF", PICTURE.resize((1, 1))))
)
ODD = right(
    "picture",
    "TIFF",
    plain=tiff(),
    width_of_a_hundred_numbers=tiff({WIDTH: (SHORT, 100, b"\x20\0" * 100)}),
    many_pages=saved("TIFF", save_all=True, append_images=[PICTURE] * 50),
    a_second_page_behind_the_end=tiff(following=10**6),
    pages_that_lead_to_the_first=tiff(following=8),
    resolution_by_zero=tiff({282: (5, 1, bytes(8)), 283: (5, 1, bytes(8))}),
    a_long_description=tiff({270: (2, 3000, b"a" * 3000), OFFSETS: (LONG, 1, 4000)}, data=bytes(0)).ljust(4000, b"\0")
    + PIXELS.tobytes(),
    orientation_0=tiff({274: (SHORT, 1, 0)}),
    orientation_99=tiff({274: (SHORT, 1, 99)}),
    a_profile_of_garbage=tiff({34675: (7, 9, b"garbage!!")}),
    a_tag_of_an_unknown_type=tiff({65000: (200, 1, 1)}),
    a_tag_longer_than_the_file=tiff({65000: (BYTE, 2**31, 0)}),
    counts_that_are_missing=tiff({COUNTS: None}),
    counts_that_are_too_large=tiff({COUNTS: (LONG, 1, 2**32 - 1)}),
    rows_beyond_the_picture=tiff({ROWS: (LONG, 1, 2**32 - 1)}),
    LZW=PACKED,
    a_float_of_no_meaning=tiff({65001: (FLOAT, 1, b"\0\0\xc0\x7f")}),
) + right("picture", "TIFF", within=6, JPEG_inside=JPEG)
CUT = refused(EITHER, "TIFF", **{f"cut_after_{n}_bytes": tiff()[:n] for n in (3, 5, 8, 9, 40, 100, 300, 1000, 3000)})
CUT += refused(EITHER, "TIFF", **{f"JPEG_inside_cut_to_{n}_percent": JPEG[: len(JPEG) * n // 100] for n in (20, 50)})

BITMAPS = (
    refused(
        EITHER,
        "BMP",
        beginning_alone=b"BM",
        header_of_17_bytes=bmp(size=17),
        header_of_two_gigabytes=bmp(size=2**31 - 1),
        header_of_0_bytes=bmp(size=0),
        bits_0=bmp(bits=0),
        bits_3=bmp(bits=3),
        bits_64=bmp(bits=64),
        a_compression_of_no_kind=bmp(compression=77),
        JPEG_it_says=bmp(compression=4),
        masks_of_no_kind=bmp(compression=3, bits=32),
        runs_of_24_bits=bmp(compression=1),
        runs_that_end_early=bmp(compression=1, bits=8, palette=bytes(1024), data=b"\x05\x01\x00\x01"),
        runs_cut=bmp(compression=1, bits=8, palette=bytes(1024), data=b"\0\xff\1"),
        no_pixels=bmp(data=b""),
        half_the_pixels=bmp(data=bytes(SIDE * SIDE)),
        pixels_behind_the_end=bmp(offset=10**6),
        pixels_at_four_gigabytes=bmp(offset=2**32 - 1),
        no_columns=bmp(width=0),
        no_rows=bmp(height=0),
        two_billion_colours=bmp(bits=8, colours=2**31, palette=bytes(1024), data=RAMP.tobytes()),
        cut=bmp()[:40],
    )
    + refused(
        PIXELS_LIMIT,
        "BMP",
        of_two_to_the_31_by_two_to_the_31=bmp(width=2**31 - 1, height=2**31 - 1),
        columns_below_zero=bmp(width=-SIDE),
        rows_from_above_of_two_to_the_31=bmp(height=-(2**31)),
        a_bomb_of_runs=bmp(
            width=40_000, height=40_000, compression=1, bits=8, palette=bytes(1024), data=b"\xff\1" * 9999
        ),
    )
    + right(
        "picture",
        "BMP",
        plain=bmp(),
        rows_from_above=bmp(height=-SIDE, data=PIXELS[:, :, ::-1].tobytes()),
        no_planes=bmp(planes=0),
        garbage_behind=bmp() + bytes(999),
    )
    + right(
        "anything",
        "BMP",
        runs_that_jump_away=bmp(compression=1, bits=8, palette=bytes(1024), data=b"\0\2\xff\xff" * 9),
    )
)
GIFS = (
    refused(
        EITHER,
        "GIF",
        beginning_alone=b"GIF89a",
        a_frame_of_no_size=gif(gif_frame(0, 0), gif_pixels()),
        no_frame=gif(b""),
        no_frame_but_ten_thousand_comments=gif(b"!\xfe\1a\0" * 10_000),
        a_comment_without_end=gif(b"!\xfe" + b"\xffa" * 9999),
        codes_of_0_bits=gif(gif_frame(), b"\0\1\0\0"),
        codes_of_13_bits=gif(gif_frame(), b"\x0d\1\0\0"),
        codes_of_255_bits=gif(gif_frame(), b"\xff\1\0\0"),
        codes_beyond_the_table=gif(gif_frame(), b"\x08\x04\xff\xff\xff\xff\0"),
        pixels_missing=gif(gif_frame(), end=b""),
        pixels_cut=gif(gif_frame(), gif_pixels()[:300], end=b""),
        pixels_ended=gif(gif_frame(), b"\x08\0"),
        a_frame_cut=gif(b",\0\0", end=b""),
        palette_cut=gif()[:200],
    )
    + refused(
        PIXELS_LIMIT,
        "GIF",
        of_65535_by_65535=gif(width=65_535, height=65_535),
        a_frame_of_65535_by_65535=gif(gif_frame(65_535, 65_535), gif_pixels()),
    )
    + right(
        "grey",
        "GIF",
        plain=gif(),
        of_no_size_but_with_a_frame=gif(width=0, height=0),
        no_end=gif(end=b""),
        a_later_frame_cut=gif(gif_frame(), gif_pixels(), gif_frame(), gif_pixels()[:99]),
        a_later_frame_of_garbage=gif(gif_frame(), gif_pixels(), b"garbage" * 99),
        a_later_frame_outside=gif(gif_frame(), gif_pixels(), gif_frame(left=60_000), gif_pixels()),
        a_hundred_frames=gif(*[gif_frame(), gif_pixels()] * 100),
        a_comment_of_every_byte=gif(b"!\xfe\xff" + bytes(range(255)) + b"\0", gif_frame(), gif_pixels()),
        a_loop_without_end=gif(b"!\xff\x0bNETSCAPE2.0\3\1\xff\xff\0", gif_frame(), gif_pixels()),
    )
    + right(
        "anything",
        "GIF",
        no_palette=gif(palette=None),
        a_frame_outside=gif(gif_frame(left=5, top=5), gif_pixels()),
        interlaced=gif(gif_frame(flags=0x40), gif_pixels()),
        clear_in_a_colour_that_is_not_there=gif(b"!\xf9\4\1\0\0\xff\0", gif_frame(), gif_pixels()),
        palette_shorter_than_indices=gif(palette=GREYS[:768]),
    )
)
TIFFS = [*LYING, *VALUES, *ODD, *CUT]
