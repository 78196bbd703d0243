"""Tests that `Explanation.load` reads or refuses every damaged or huge file, with little memory and time."""

import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hostile.damages import (
    SPECIAL,
    bomb,
    cut,
    flipped,
    link_to,
    npy,
    packed,
    parts_of,
    with_map,
    with_parts,
    with_text,
    with_wrong_checksum,
    zeroed,
)
from hostile.verdicts import Case, verdict_of_call
from pages import explanation

import repeat_xai as rx

MAX_BYTES = 40e6
"""Limit of the memory in bytes; an undamaged file of the corpus needs a fiftieth of it."""
SIDE = 48
DEEP = "[" * 100_000 + "]" * 100_000


def at(row, column, value):
    """Return a function that puts a value into one pixel of a map."""

    def change(values):
        values[row, column] = value
        return values

    return change


def text(content):
    return np.array(content)


def repacked(change, **how):
    """Return a function that writes the parts of a file again, changed by `change`."""
    return lambda path: packed(change(parts_of(path)), path, **how)


def renamed(old, new):
    return repacked(lambda parts: {(new if name == old else name): content for name, content in parts.items()})


def edited(find, offset, content):
    """Return a function that replaces bytes at an offset behind the first occurrence of `find`."""

    def damage(path):
        data = bytearray(path.read_bytes())
        start = data.index(find) + offset
        data[start : start + len(content)] = content
        path.write_bytes(data)

    return damage


def appended(content):
    return lambda path: path.write_bytes(path.read_bytes() + content)


def sparse(path):
    os.truncate(path, 6 * 2**30)


def long_list(path):
    """Write some megabytes of entries, each of a few bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"{number}", b"")


def photo(**fields):
    return with_text("photo", **fields)


def provenance(**fields):
    return with_text("provenance", **fields)


def nested(levels):
    inner = {}
    for _ in range(levels):
        inner = {"in": inner}
    return inner


IMPORTANCE = np.zeros((SIDE, SIDE), np.float32)
REFUSED = {
    # damage by a disk, a network or an incomplete copy
    "first byte flipped": flipped(0.0),
    "a bit flipped a tenth in": flipped(0.1),
    "a bit flipped in the middle": flipped(0.5),
    "a bit flipped near the end": flipped(0.99),
    "last byte changed": flipped(1.0),
    "cut to a half": cut(0.5),
    "cut by a few bytes": cut(0.999),
    "empty": cut(0),
    "zeros": zeroed,
    "no ZIP": lambda path: path.write_text("hello"),
    "a wrong checksum": with_wrong_checksum,
    "content appended": appended(b"more"),
    "a comment that is a second list": appended(b"PK\x05\x06" + bytes(16) + b"\x05\x00hello"),
    "six gigabytes of nothing": sparse,
    # wrong sizes
    "a bomb of 64 GB": bomb(131_072),
    "a bomb of 400 MB": bomb(10_240),
    "a bomb that calls itself small": bomb(10_240, claimed_size=9344),
    "a shape of a trillion": with_parts(importance=npy(IMPORTANCE, shape=(10**6, 10**6))),
    "a shape beyond every integer": with_parts(importance=npy(IMPORTANCE, shape=(10**30, 10**30))),
    "a shape below zero": with_parts(importance=npy(IMPORTANCE, shape=(-SIDE, -SIDE))),
    "a shape smaller than its values": with_parts(importance=npy(IMPORTANCE, shape=(SIDE, SIDE - 1))),
    "a text of a billion letters": with_parts(photo=npy(text("x"), descr=f"<U{10**9}")),
    "a list of 20,000 parts": long_list,
    "a list said to be 4 GB long": edited(b"PK\x05\x06", 12, b"\xff\xff\xff\xff"),
    "a list that is said to be a huge file's": lambda path: path.write_bytes(
        path.read_bytes()[:-22] + b"PK\x06\x06" + bytes(52) + b"PK\x06\x07" + bytes(16) + path.read_bytes()[-22:]
    ),
    # foreign parts
    "no importance": with_parts(importance=...),
    "no provenance": with_parts(provenance=...),
    "another part": with_parts(notes=np.zeros(3)),
    "a part twice": lambda path: packed([*parts_of(path).items(), ("photo.npy", npy(text("{}")))], path),
    "a name with a way out": renamed("photo.npy", "../photo.npy"),
    "an absolute name": renamed("photo.npy", "/tmp/photo.npy"),
    "a part compressed by LZMA": repacked(dict, compression=zipfile.ZIP_LZMA),
    "a part compressed by BZIP2": repacked(dict, compression=zipfile.ZIP_BZIP2),
    "a part said to be encrypted": edited(b"PK\x01\x02", 8, b"\x01"),
    "a part compressed in an unknown way": edited(b"PK\x01\x02", 10, b"\x63"),
    "objects that would run code": with_parts(importance=np.array([[{"a": 1}]], dtype=object)),
    "a part that is no array": with_parts(importance=b"not numpy"),
    "numpy's format of version 9": with_parts(importance=b"\x93NUMPY\x09\x00" + npy(IMPORTANCE)[8:]),
    "a header that is no description": with_parts(importance=npy(IMPORTANCE).replace(b"'descr'", b"'dcsre'")),
    "a header of another Python": with_parts(importance=npy(IMPORTANCE).replace(b"(48, 48)", b"(48L,48)")),
    "a header nested deep": with_parts(
        importance=b"\x93NUMPY\x01\x00" + (20_000).to_bytes(2, "little") + b"(" * 20_000
    ),
    # values that are no maps
    "infinite importance": with_map("importance", at(3, 4, np.inf)),
    "importance that is not a number": with_map("importance", at(0, 0, np.nan)),
    "uncertainty below zero": with_map("uncertainty", at(0, 0, -0.01)),
    "infinite uncertainty": with_map("uncertainty", at(1, 1, np.inf)),
    "uncertainty not known of some pixels": with_map("uncertainty", at(1, 1, np.nan)),
    "uncertainty not known although there are votes": with_map("uncertainty", lambda values: values * np.nan),
    "votes without uncertainty": with_parts(uncertainty=...),
    "a share of votes above one": with_map("vote_share", at(2, 2, 1.01)),
    "a share of votes below zero": with_map("vote_share", at(2, 2, -0.01)),
    "a share of votes that is not a number": with_map("vote_share", at(2, 2, np.nan)),
    "maps in one row": with_map("importance", np.ravel),
    "maps with an axis too many": with_map("importance", lambda values: values[None]),
    "maps without pixels": with_map("importance", lambda values: values[:0]),
    "maps of different shapes": with_map("uncertainty", lambda values: values[:-1].copy()),
    "maps in double precision": with_map("importance", np.float64),
    "maps of whole numbers": with_map("vote_share", np.int32),
    "maps of text": with_parts(importance=np.full((SIDE, SIDE), "0.5")),
    "maps with their bytes the other way round": with_map("importance", lambda values: values.astype(">f4")),
    "maps of records": with_parts(importance=np.zeros((SIDE, SIDE), [("a", "<f4")])),
    # photos that do not match the maps
    "a picture in grey": with_map("picture", lambda values: values[..., :1].copy()),
    "a picture of floats": with_map("picture", np.float32),
    "a picture of another shape than its photo": with_map("picture", lambda values: values[:9].copy()),
    "a picture larger than its photo": photo(size=[10, 15]),
    "a photo of no size": photo(size=[0, 0]),
    "a photo of a size below zero": photo(size=[-150, -226]),
    "a photo of half pixels": photo(size=[150.5, 226.0]),
    "a photo of true by true": photo(size=[True, True]),
    "a photo of one side": photo(size=[150]),
    "a photo whose size is text": photo(size="150x226"),
    "a photo larger than any": photo(size=[150 * 10**40, 226 * 10**40]),
    "a box beyond the photo": photo(box=[0.0, 0.0, 5000.0, 100.0]),
    "a box the wrong way round": photo(box=[100.0, 100.0, 10.0, 10.0]),
    "a box without area": photo(box=[10.0, 10.0, 10.0, 90.0]),
    "a box that is not a number": photo(box=[float("nan")] * 4),
    "a box of three numbers": photo(box=[0.0, 0.0, 100.0]),
    "a box of words": photo(box=["left", "top", "right", "bottom"]),
    "a photo without a name": photo(name=...),
    "a photo whose name is a number": photo(name=5),
    "a photo without a digest": photo(digest=...),
    # provenance and other text
    "provenance that is a list": with_parts(provenance=text("[]")),
    "provenance that is no JSON": with_parts(provenance=text("{'method': 1}")),
    "provenance cut short": with_parts(provenance=text('{"method": {"name"')),
    "provenance 100,000 deep": with_parts(provenance=text(DEEP)),
    "provenance forty deep": provenance(more=nested(40)),
    "provenance that is a number": with_parts(provenance=np.float32(1)),
    "two provenances": with_parts(provenance=np.array(["{}", "{}"])),
    "letters beyond Unicode": with_parts(provenance=npy(np.array([2**31 - 1], np.uint32), descr="<U1", shape=())),
    "a number of 5,000 digits": with_parts(provenance=text('{"seed": ' + "9" * 5000 + "}")),
    "five million letters of provenance": provenance(notes="x" * 5_000_000),
    "a method without a name": provenance(method={}),
    "a method that is a word": provenance(method="repeat"),
    "no encoder": provenance(encoder=...),
    "a base that is a number": provenance(method={"name": "Repeat", "base": 5}),
    "a budget that is a number": provenance(budget=5),
    **{f"{name} in its place": make for name, make in SPECIAL.items()},
}
RIGHT = {
    "signed importance": with_map("importance", lambda values: values - np.float32(0.5)),
    "maps in columns": with_map("importance", np.asfortranarray),
    "no votes": with_parts(vote_share=...),
    "no votes, and no uncertainty": with_parts(vote_share=..., uncertainty=...),
    "not compressed": repacked(dict, compression=zipfile.ZIP_STORED),
    "a share of votes above one by rounding": with_map("vote_share", at(0, 0, np.float32(1 + 1e-7))),
    "a name with every odd letter": photo(name="a\n\x1b[31m\udcff\u202e.png"),
    "a link to the file": lambda path: link_to(path.rename(path.with_name("b.npz")))(path),
}
CASES = [
    *(
        Case(name=name, make=make, message=r"not an explanation|is not a regular file")
        for name, make in REFUSED.items()
    ),
    *(Case(name=name, make=make, expected="right") for name, make in RIGHT.items()),
]


@pytest.fixture(scope="module")
def whole():
    return explanation(photo=np.random.default_rng(0).integers(0, 256, (150, 226, 3), np.uint8))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_hostile_file_is_read_or_refused_in_one_line(case, whole, judge, tmp_path):
    path = tmp_path / "a.npz"
    whole.save(path)
    case.make(path)
    tracemalloc.start()
    try:
        verdict = verdict_of_call(lambda: rx.Explanation.load(path), seconds=10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MAX_BYTES
    judge("explanation files", verdict, case)
    if case.expected == "right":
        expect_usable(rx.Explanation.load(path), path)


def expect_usable(explanation, path):
    """Check that an explanation can be shown, and is equal after it is saved and loaded again."""
    explanation.save(path.with_name("again.npz"))
    again = rx.Explanation.load(path.with_name("again.npz"))
    for name in ("importance", "uncertainty", "vote_share"):
        values, saved_values = getattr(explanation, name), getattr(again, name)
        np.testing.assert_array_equal(np.array(values), np.array(saved_values))
    assert json.dumps(again.provenance) == json.dumps(explanation.provenance)
    assert explanation._repr_html_().startswith("<iframe")
