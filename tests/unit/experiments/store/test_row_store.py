"""Rows come back from a store as they went in, to the bit; what is no store is said in a line."""

import math
import struct
from pathlib import Path
from typing import ClassVar

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import bits, row

from repeat_xai.errors import ConfigurationError, OutputError
from repeat_xai.experiments.store.row_schema import MARK, packed, parts, unpacked
from repeat_xai.experiments.store.row_store import Store

QUIET_NAN, NEGATIVE_NAN = (struct.unpack("<d", struct.pack("<Q", n))[0] for n in (0x7FF8000000000007, 0xFFF8 << 48))
ODD = [
    row("plain"),
    row("numbers", scores={"a": math.nan, "b": QUIET_NAN, "c": NEGATIVE_NAN, "d": -0.0, "e": 5e-324, "ф": math.inf}),
    row("code", code=(-math.inf, 1 / 3, math.nan, 2.0**-1074), calls=2**63 - 1, seconds=1e-9),
    row("seed", seed=2**64 - 1, failure="because\nof this"),
    row("names", image="猫/кот é 🐈 \x00.png", dataset="", setting='{"a": "ø"}'),
]
numbers = st.floats(width=64)
text = st.text()
fields = {
    "key": text,
    "image": text,
    "seed": st.integers(0, 2**64 - 1),
    "scores": st.dictionaries(text, numbers, max_size=4),
    "code": st.lists(numbers, max_size=4).map(tuple),
    "calls": st.integers(0, 2**63 - 1),
    "seconds": numbers,
    "failure": st.none() | text,
    "setting": text,
}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=3))
def test_every_row_comes_back_to_the_bit(drawn):
    rows = [row(**some) for some in drawn]
    found = [row for part in parts(packed(rows), "name") for row in unpacked(part)]
    assert [bits(row) for row in found] == [bits(row) for row in rows]


@pytest.fixture(params=["path", "file", "memory"])
def url(request, tmp_path):
    return {"path": tmp_path / "rows", "file": f"file://{tmp_path}/rows", "memory": f"memory://{tmp_path}/rows"}[
        request.param
    ]


def test_a_store_may_lie_anywhere(url):
    store = Store(url)
    assert (store.rows(), store.done()) == ({}, {})
    for some in ODD:
        store.add([some])
    store.add([])
    again = Store(url)
    assert {key: bits(row) for key, row in again.rows().items()} == {row.key: bits(row) for row in ODD}
    assert set(again.done()) == {"plain", "numbers", "code", "names"}
    assert set(again.rows({"code", "seed", "none such"})) == {"code", "seed"}
    assert again.rows(set()) == {}
    again.merge(at_least=2)
    assert len(again._folder.sizes()) == 1
    assert {key: bits(row) for key, row in store.rows().items()} == {row.key: bits(row) for row in ODD}


class Objects(MemoryFileSystem):
    """As S3 has it: a folder is not there before something is in it, and what goes wrong is no OSError."""

    protocol = "objects"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]
    reached = True

    def makedirs(self, path, exist_ok=False):
        self.expect_reached()

    def ls(self, path, detail=True, **kwargs):
        self.expect_reached()
        return super().ls(path, detail=detail, **kwargs)

    def expect_reached(self):
        if not self.reached:
            raise EndpointError("Could not connect to the endpoint\nand many words")


class EndpointError(Exception):
    pass


def test_among_objects_a_store_is_there_when_something_is_in_it(tmp_path, monkeypatch):
    fsspec.register_implementation("objects", Objects, clobber=True)
    url = f"objects://{tmp_path}/rows"
    assert set(Store(url).done()) == set()
    Store(url).add(ODD)
    assert set(Store(url).rows()) == {row.key for row in ODD}
    store = Store(url)
    monkeypatch.setattr(Objects, "reached", False)
    for refused in (store.done, lambda: Store(url)):
        with pytest.raises(OutputError) as error:
            refused()
        assert str(error.value).endswith("(Could not connect to the endpoint)")


def test_a_path_is_a_path_whatever_it_looks_like(tmp_path):
    for name in ("a::b", "memory:", "ex%20ample", "s3:"):
        Store(tmp_path / name).add([row()])
        assert [path.suffix for path in (tmp_path / name).iterdir()] == [".parquet"]
        assert set(Store(tmp_path / name).done()) == {"0"}


def test_a_name_that_is_no_unicode_is_spelt_out(tmp_path):
    store = Store(tmp_path)
    store.add([row("0", image="caf\udce9.png", scores={"\udcff": 1.0}, failure="caf\udce9.png: empty")])
    found = store.rows()["0"]
    assert (found.image, found.failure) == ("caf\\udce9.png", "caf\\udce9.png: empty")


def test_a_row_with_numbers_counts_before_failures_of_its_key(tmp_path):
    store = Store(tmp_path)
    for failure in ("first", None, "last"):
        store.add([row(failure=failure, code=() if failure else (1.0,))])
        store.add([row("1", failure=failure)])
    for _ in range(2):
        assert {key: row.failure for key, row in store.rows().items()} == {"0": None, "1": None}
        assert store.rows()["0"].code == (1.0,)
        store.compact()
    assert sum(len(part) for part in store._parts(None)) == 2


def test_a_seed_too_large_for_a_row_is_refused():
    with pytest.raises(ConfigurationError, match="seeds from 0 to 2⁶⁴ − 1, not 18446744073709551616"):
        row(seed=2**64)


def test_every_later_version_reads_schema_1(tmp_path):
    """A file kept since; never write it anew."""
    (tmp_path / "old.parquet").write_bytes((Path(__file__).parent / "schema_1.parquet").read_bytes())
    assert {key: bits(row) for key, row in Store(tmp_path).rows().items()} == {row.key: bits(row) for row in ODD}


def test_a_later_schema_is_refused_in_a_line(tmp_path):
    table = pq.read_table(Path(__file__).parent / "schema_1.parquet")
    pq.write_table(table.replace_schema_metadata({MARK: b"2"}), tmp_path / "new.parquet")
    with pytest.raises(OutputError) as refused:
        Store(tmp_path).done()
    assert str(refused.value).endswith("new.parquet: holds rows of schema 2, this version reads 1; update repeat-xai")


def foreign(path):
    pq.write_table(pa.table({"a": [1]}), path)


def truncated(path):
    path.write_bytes(packed(ODD)[:-100])


def empty(path):
    path.write_bytes(b"")


def flipped(path):
    """One bit of one number."""
    content = bytearray(packed([row(code=tuple(float(n) for n in range(1000)))]))
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def marked(path):
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({MARK: b"1"}), path)


@pytest.mark.parametrize("spoil", [foreign, truncated, empty, flipped, marked])
def test_a_file_that_holds_no_rows_is_named_in_a_line(tmp_path, spoil):
    Store(tmp_path).add([row()])
    spoil(tmp_path / "bad.parquet")
    for ask in (Store.rows,) if spoil is flipped else (Store.rows, Store.done):  # keys are read without numbers
        with pytest.raises(OutputError) as refused:
            ask(Store(tmp_path))
        assert str(refused.value).startswith(str(tmp_path / "bad.parquet"))
        assert str(refused.value).endswith("move it away and run again")
        assert len(str(refused.value).splitlines()) == 1
    (tmp_path / "bad.parquet").unlink()
    assert set(Store(tmp_path).done()) == {"0"}


def test_unfinished_and_other_files_are_passed_over(tmp_path):
    store = Store(tmp_path)
    store.add([row()])
    (tmp_path / ".draft.parquet").write_bytes(b"PAR1")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "folder.parquet").mkdir()
    assert set(store.done()) == {"0"}


def test_places_that_cannot_be_opened_are_named_in_a_line(tmp_path):
    (tmp_path / "file").write_text("")
    for url in (tmp_path / "file", tmp_path / "file/rows", "nowhere://rows"):
        with pytest.raises(OutputError, match="cannot be opened as a store") as refused:
            Store(url)
        assert len(str(refused.value).splitlines()) == 1
