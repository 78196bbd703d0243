"""JPEGs that are damaged, wrong, or unusual but valid, and cases of EXIF data."""

import struct

import numpy as np
import PIL.Image
from hostile.image_bytes import LONG, PICTURE, SHORT, edited, exif, saved, segment, with_frame, with_segment
from hostile.image_cases import DAMAGED, EITHER, NO_IMAGE, PIXELS_LIMIT, TOO_SMALL, refused, right

WHOLE = saved("JPEG", quality=95)
PROGRESSIVE = saved("JPEG", quality=95, progressive=True)
NOISE = PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
BODY = WHOLE.index(b"\xff\xda") + 14
EXIF, ICC, ADOBE = b"Exif\0\0", b"ICC_PROFILE\0", b"Adobe\0\x64\0\0\0\0"
ORIENTATION = 0x0112


def scans(number: int) -> bytes:
    """Return a progressive JPEG with this number of scans."""
    last = PROGRESSIVE[PROGRESSIVE.rindex(b"\xff\xda") : -2]
    return PROGRESSIVE[:-2] + last * number + PROGRESSIVE[-2:]


def tagged(tags, following: int = 0) -> bytes:
    return with_segment(segment(0xE1, EXIF + exif(tags, following)))


def without(marker: bytes) -> bytes:
    """Return the JPEG without the first segment of this kind."""
    start = WHOLE.index(marker)
    return WHOLE[:start] + WHOLE[start + 2 + int.from_bytes(WHOLE[start + 2 : start + 4]) :]


FRAMES = refused(
    EITHER,
    "JPEG",
    precision_of_12_bits=with_frame(4, b"\x0c"),
    precision_of_16_bits=with_frame(4, b"\x10"),
    precision_of_0_bits=with_frame(4, b"\0"),
    no_colours=with_frame(9, b"\0"),
    two_colours=with_frame(9, b"\2"),
    five_colours=with_frame(9, b"\5"),
    two_hundred_colours=with_frame(9, b"\xc8"),
    sampling_of_0=with_frame(11, b"\0"),
    sampling_of_15_by_15=with_frame(11, b"\xff"),
    a_table_that_is_not_there=with_frame(12, b"\3"),
    a_table_beyond_all=with_frame(12, b"\xff"),
    frame_cut=with_frame(2, b"\0\5"),
    frame_longer_than_the_file=with_frame(2, b"\xff\xff"),
    lossless=with_frame(0, b"\xff\xc3"),
    hierarchical=with_frame(0, b"\xff\xc5"),
    two_frames=WHOLE[:2] + WHOLE[WHOLE.index(b"\xff\xc0") : WHOLE.index(b"\xff\xc0") + 19] + WHOLE[2:],
    no_frame=without(b"\xff\xc0"),
    no_columns=with_frame(7, b"\0\0"),
    no_rows=with_frame(5, b"\0\0"),
)
SIZES = (
    refused(
        PIXELS_LIMIT,
        "JPEG",
        of_65535_by_65535=with_frame(5, b"\xff\xff\xff\xff"),
        of_9500_by_9500=with_frame(5, struct.pack(">HH", 9500, 9500)),
        progressive_of_65535_by_65535=with_frame(5, b"\xff\xff\xff\xff", PROGRESSIVE, b"\xff\xc2"),
    )
    + refused(
        TOO_SMALL,
        "JPEG",
        of_one_pixel=saved("JPEG", PICTURE.resize((1, 1))),
        of_one_by_sixty_thousand=saved("JPEG", PICTURE.resize((1, 60_000))),
    )
    + right("anything", "JPEG", of_eight_by_sixty_thousand=saved("JPEG", PICTURE.resize((8, 60_000))))
)
STRUCTURE = refused(
    EITHER,
    "JPEG",
    no_end=WHOLE[:-2],
    jfif_cut=with_segment(segment(0xE0, b"JFIF")),
    a_profile_cut=with_segment(segment(0xE2, ICC)),
    beginning_alone=b"\xff\xd8\xff",
    beginning_and_end=b"\xff\xd8\xff\xd9",
    beginning_and_junk=lambda: b"\xff\xd8\xff" + b"\1" * 5_000_000,
    a_hundred_thousand_empty_segments=lambda: b"\xff\xd8" + segment(0xE5) * 400_000,
    a_segment_shorter_than_its_length=with_segment(segment(0xEE, b"a", length=60_000)),
    no_tables_of_quantisation=edited(without(b"\xff\xdb"), b"\xff\xdb", 4, b"\3"),
    tables_of_codes_that_count_too_much=edited(WHOLE, b"\xff\xc4", 5, b"\xff" * 16),
    tables_of_codes_cut=edited(WHOLE, b"\xff\xc4", 2, b"\0\3"),
    a_scan_of_no_colours=edited(WHOLE, b"\xff\xda", 4, b"\0"),
    a_scan_of_colours_that_are_not_there=edited(WHOLE, b"\xff\xda", 5, b"\x77"),
    a_scan_with_tables_that_are_not_there=edited(WHOLE, b"\xff\xda", 6, b"\x33"),
    progressive_with_bits_beyond_all=edited(PROGRESSIVE, b"\xff\xda", 11, b"\x3f\x00\xff"),
    no_pixels=WHOLE[:BODY],
)
SCANS = refused(
    "more than 100 scans", "JPEG", refined_ten_thousand_times=lambda: scans(10_000), refined_100_times=scans(100)
)
ODD = right(
    "picture",
    "JPEG",
    within=6,
    plain=WHOLE,
    progressive=PROGRESSIVE,
    a_segment_of_length_0=with_segment(segment(0xE4, b"", length=0)),
    a_segment_of_length_1=with_segment(segment(0xE4, b"", length=1)),
    an_empty_table_of_codes=with_segment(segment(0xC4)),
    garbage_behind_the_end=WHOLE + bytes(range(256)) * 99,
    two_in_a_row=WHOLE + WHOLE,
    with_a_thousand_times_the_mark_of_a_scan_behind=WHOLE + b"\xff\xda" * 1000,
    restarts_announced_but_none_there=with_segment(segment(0xDD, b"\xff\xff")),
    a_long_comment=with_segment(segment(0xFE, b"\0\xff" * 32_000)),
    a_thousand_comments=with_segment(*[segment(0xFE, b"a")] * 1000),
    zeros_before_a_marker=WHOLE[:2] + b"\xff" * 500 + WHOLE[2:],
    jfif_of_no_version=with_segment(segment(0xE0, b"JFIF\0\xff\xff\xff\0\0\0\0\0\0")),
    photoshop_parts_that_lie=with_segment(segment(0xED, b"Photoshop 3.0\x008BIM\x03\xed\0\0\xff\xff\xff\xff")),
    photoshop_parts_cut=with_segment(segment(0xED, b"Photoshop 3.0\x008BIM\x03")),
    pictures_in_it_that_are_not_there=with_segment(segment(0xE2, b"MPF\0" + exif({0xB001: (LONG, 1, 9)}))),
    an_index_of_pictures_that_is_garbage=with_segment(segment(0xE2, b"MPF\0garbage")),
    flashpix_cut=with_segment(segment(0xE2, b"FPXR\0")),
    colours_said_to_be_of_255=with_segment(segment(0xEE, ADOBE[:-1] + b"\xff")),
    a_profile_of_garbage=with_segment(segment(0xE2, ICC + b"\1\1garbage")),
    a_profile_in_parts_that_are_not_there=with_segment(segment(0xE2, ICC + b"\1\xffgarbage")),
    a_profile_of_part_0=with_segment(segment(0xE2, ICC + b"\0\0")),
    a_profile_of_16_megabytes=lambda: with_segment(
        *[segment(0xE2, ICC + bytes((part, 255)) + bytes(65_000)) for part in range(1, 256)]
    ),
    exif_empty=with_segment(segment(0xE1, EXIF)),
    exif_of_garbage=with_segment(segment(0xE1, EXIF + b"garbage" * 99)),
    exif_of_no_order=with_segment(segment(0xE1, EXIF + b"XX*\0" + bytes(99))),
    exif_twice=with_segment(*[segment(0xE1, EXIF + exif({ORIENTATION: (SHORT, 1, 1)}))] * 2),
    exif_that_leads_to_itself=tagged({0x8769: (LONG, 1, 8), 0x8825: (LONG, 1, 8), 0xA005: (LONG, 1, 8)}, following=8),
    exif_that_leads_behind_the_file=tagged({0x8769: (LONG, 1, 2**31)}, following=2**31),
    exif_with_65535_tags_that_are_not_there=with_segment(segment(0xE1, EXIF + b"II*\0\x08\0\0\0\xff\xff")),
    exif_of_negative_rationals_by_zero=tagged({0x011A: (5, 1, bytes(8)), 0x011B: (10, 1, b"\xff" * 8)}),
    orientation_0=tagged({ORIENTATION: (SHORT, 1, 0)}),
    orientation_9=tagged({ORIENTATION: (SHORT, 1, 9)}),
    orientation_65535=tagged({ORIENTATION: (SHORT, 1, 65_535)}),
    orientation_in_letters=tagged({ORIENTATION: (2, 4, b"3\0\0\0")}),
    orientation_of_an_unknown_type=tagged({ORIENTATION: (99, 1, 3)}),
    orientation_of_two_numbers=tagged({ORIENTATION: (SHORT, 2, b"\1\0\3\0")}),
    xmp_of_garbage=with_segment(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<<" + b'tiff:Orientation="x"' * 99)),
    xmp_of_ten_thousand_brackets=with_segment(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + b"<a>" * 10_000)),
) + right(
    "anything",
    "JPEG",
    end_in_the_place_of_the_pixels=WHOLE[:BODY] + b"\xff\xd9",
    refined_ten_times_more=scans(10),
    cmyk=saved("JPEG", PICTURE.convert("CMYK")),
    cmyk_of_adobe=with_segment(segment(0xEE, ADOBE + b"\0"), content=saved("JPEG", PICTURE.convert("CMYK"))),
    ycck=with_segment(segment(0xEE, ADOBE + b"\2"), content=saved("JPEG", PICTURE.convert("CMYK"))),
    rgb_of_adobe=with_segment(segment(0xEE, ADOBE + b"\0")),
    grey=saved("JPEG", PICTURE.convert("L")),
    noise_at_the_lowest_quality=saved("JPEG", NOISE, quality=1),
    a_bit_flipped_in_the_pixels=edited(WHOLE, WHOLE[BODY + 40 : BODY + 44], 1, b"\x55"),
)
CUT = refused(DAMAGED, "JPEG", **{f"cut_{n}_bytes_into_pixels": WHOLE[: BODY + n] for n in (1, 20, 50, 80, 110, 140)})
CUT += refused(
    DAMAGED, "JPEG", **{f"progressive_cut_to_{n}_percent": PROGRESSIVE[: len(PROGRESSIVE) * n // 100] for n in (60, 75)}
)
CUT += refused(EITHER, "JPEG", **{f"cut_after_{n}_bytes": WHOLE[:n] for n in (2, 4, 19, 20, 30, 100, 170, 300, 600)})
RENAMED = refused(
    NO_IMAGE,
    "no image",
    PostScript=b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 32 32\n(%stdout) (w) file\n",
    PostScript_of_Pillow=saved("EPS"),
    PostScript_of_DOS=b"\xc5\xd0\xd3\xc6" + bytes(99),
    PDF=saved("PDF"),
    SVG=b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    HTML=b"<!doctype html><html><script>alert(1)</script>",
    a_login_page=b"<html><title>Please log in</title></html>",
    JSON=b'{"error": "not found"}',
    a_script=b"#!/bin/sh\nrm -rf /\n",
    an_executable=b"\x7fELF\2\1\1" + bytes(200),
    a_ZIP=b"PK\3\4" + bytes(99),
    a_gzip=b"\x1f\x8b\x08" + bytes(99),
    a_pickle=b"\x80\4cos\nsystem\n(S'true'\ntR.",
    a_film=b"\0\0\0\x18ftypmp42" + bytes(99),
    a_sound=b"RIFF\x24\0\0\0WAVEfmt " + bytes(99),
    Photoshop=b"8BPS\0\1" + bytes(99),
    an_icon=saved("ICO"),
    an_icon_of_a_Mac=saved("ICNS"),
    a_texture=saved("DDS"),
    Targa=saved("TGA"),
    PCX=saved("PCX"),
    Silicon_Graphics=saved("SGI"),
    an_X_bitmap=b"#define im_width 32\n#define im_height 32\nstatic char im_bits[] = {\n0x00 };",
    an_X_pixmap=b'/* XPM */\nstatic char *a[] = {\n"32 32 2 1",',
    FITS=b"SIMPLE  =                    T" + b" " * 2850,
    HDF5=b"\x89HDF\r\n\x1a\n" + bytes(99),
    GRIB=b"GRIB" + bytes(99),
    a_metafile=b"\xd7\xcd\xc6\x9a\0\0" + bytes(99),
    QOI=saved("QOI"),
    an_array=b"\x93NUMPY\1\0v\0{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    text="What a day, 猫!\n".encode() * 99,
    text_in_two_bytes="What a day!".encode("utf-16"),
    one_byte=b"\xff",
    zeros=bytes(9999),
    spaces=b" " * 99,
    every_byte=bytes(range(256)),
    noise=np.random.default_rng(1).bytes(9999),
) + refused("the file is empty", "no image", empty=b"")
JPEGS = [*FRAMES, *SIZES, *STRUCTURE, *SCANS, *ODD, *CUT, *RENAMED]
