"""Tests of the store of rows: rows are read back bit for bit, and damaged files give errors of one line."""

import math
import os
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
from repeat_xai.experiments.store.row_schema import VERSION_KEY, parquet_of_rows, read_batches, rows_in
from repeat_xai.experiments.store.row_store import RowStore

QUIET_NAN, NEGATIVE_NAN = (struct.unpack("<d", struct.pack("<Q", n))[0] for n in (0x7FF8000000000007, 0xFFF8 << 48))
UNUSUAL_ROWS = [
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


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=3))
def test_every_row_is_read_back_bit_for_bit(drawn):
    rows = [row(**fields) for fields in drawn]
    stored = [row for batch in read_batches(parquet_of_rows(rows), "name") for row in rows_in(batch)]
    assert [bits(row) for row in stored] == [bits(row) for row in rows]


@pytest.fixture(params=["path", "file", "memory"])
def url(request, tmp_path):
    return {"path": tmp_path / "rows", "file": f"file://{tmp_path}/rows", "memory": f"memory://{tmp_path}/rows"}[
        request.param
    ]


def test_a_store_may_be_a_path_or_a_url(url):
    store = RowStore(url)
    assert (store.rows(), store.score_names()) == ({}, {})
    for unusual_row in UNUSUAL_ROWS:
        store.add([unusual_row])
    store.add([])
    again = RowStore(url)
    assert {key: bits(row) for key, row in again.rows().items()} == {row.key: bits(row) for row in UNUSUAL_ROWS}
    assert set(again.score_names()) == {"plain", "numbers", "code", "names"}
    assert set(again.rows({"code", "seed", "none such"})) == {"code", "seed"}
    assert again.rows(set()) == {}
    again.merge(at_least=2)
    assert len(again._folder.sizes()) == 1
    assert {key: bits(row) for key, row in store.rows().items()} == {row.key: bits(row) for row in UNUSUAL_ROWS}


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("more")],
    ids=["FIFO", "folder", "device", "link"],
)
def test_a_parquet_name_that_is_no_regular_file_is_refused(tmp_path, make):
    store = RowStore(tmp_path)
    store.add([row("plain")])
    (tmp_path / "more").write_bytes(parquet_of_rows([row("linked")]))
    make(tmp_path / "more.parquet")
    with pytest.raises(OutputError, match=r"more\.parquet: is not a regular file"):
        store.rows()


class Objects(MemoryFileSystem):
    """Like S3: a folder does not exist before something is in it, and errors are not OSErrors."""

    protocol = "objects"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]
    reachable = True

    def makedirs(self, path, exist_ok=False):
        self.expect_reachable()

    def ls(self, path, detail=True, **kwargs):
        self.expect_reachable()
        return super().ls(path, detail=detail, **kwargs)

    def expect_reachable(self):
        if not self.reachable:
            raise EndpointError("Could not connect to the endpoint\nand many words")


class EndpointError(Exception):
    pass


def test_a_store_of_objects_is_empty_before_something_is_in_it(tmp_path, monkeypatch):
    fsspec.register_implementation("objects", Objects, clobber=True)
    url = f"objects://{tmp_path}/rows"
    assert set(RowStore(url).score_names()) == set()
    RowStore(url).add(UNUSUAL_ROWS)
    assert set(RowStore(url).rows()) == {row.key for row in UNUSUAL_ROWS}
    store = RowStore(url)
    monkeypatch.setattr(Objects, "reachable", False)
    for refused in (store.score_names, lambda: RowStore(url)):
        with pytest.raises(OutputError) as error:
            refused()
        assert str(error.value).endswith("(Could not connect to the endpoint)")


def test_a_path_that_looks_like_a_url_is_a_path(tmp_path):
    for name in ("a::b", "memory:", "ex%20ample", "s3:"):
        RowStore(tmp_path / name).add([row()])
        assert [path.suffix for path in (tmp_path / name).iterdir()] == [".parquet"]
        assert set(RowStore(tmp_path / name).score_names()) == {"0"}


def test_bytes_of_a_name_that_are_not_unicode_are_escaped(tmp_path):
    store = RowStore(tmp_path)
    store.add([row("0", image="caf\udce9.png", scores={"\udcff": 1.0}, failure="caf\udce9.png: empty")])
    stored = store.rows()["0"]
    assert (stored.image, stored.failure) == ("caf\\udce9.png", "caf\\udce9.png: empty")


def test_a_row_with_numbers_counts_before_failures_of_its_key(tmp_path):
    store = RowStore(tmp_path)
    for failure in ("first", None, "last"):
        store.add([row(failure=failure, code=() if failure else (1.0,))])
        store.add([row("1", failure=failure)])
    for _ in range(2):
        assert {key: row.failure for key, row in store.rows().items()} == {"0": None, "1": None}
        assert store.rows()["0"].code == (1.0,)
        store.compact()
    assert sum(len(batch) for batch in store._batches(None)) == 2


def test_a_seed_too_large_for_a_row_is_refused():
    with pytest.raises(ConfigurationError, match="seeds"):
        row(seed=2**64)


def test_every_later_version_reads_schema_1(tmp_path):
    """The file was written by the first version and must never be written again."""
    (tmp_path / "old.parquet").write_bytes((Path(__file__).parent / "schema_1.parquet").read_bytes())
    assert {key: bits(row) for key, row in RowStore(tmp_path).rows().items()} == {
        row.key: bits(row) for row in UNUSUAL_ROWS
    }


def test_a_later_schema_is_refused_in_one_line(tmp_path):
    table = pq.read_table(Path(__file__).parent / "schema_1.parquet")
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: b"2"}), tmp_path / "new.parquet")
    with pytest.raises(OutputError) as refused:
        RowStore(tmp_path).score_names()
    assert str(refused.value).endswith("new.parquet: holds rows of schema 2, this version reads 1; update repeat-xai")


def foreign(path):
    pq.write_table(pa.table({"a": [1]}), path)


def truncated(path):
    path.write_bytes(parquet_of_rows(UNUSUAL_ROWS)[:-100])


def empty(path):
    path.write_bytes(b"")


def flipped(path):
    """Write a file in which one bit of a number is flipped."""
    content = bytearray(parquet_of_rows([row(code=tuple(float(n) for n in range(1000)))]))
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def marked(path):
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({VERSION_KEY: b"1"}), path)


@pytest.mark.parametrize("spoil", [foreign, truncated, empty, flipped, marked])
def test_a_file_without_readable_rows_is_named_in_an_error_of_one_line(tmp_path, spoil):
    RowStore(tmp_path).add([row()])
    spoil(tmp_path / "bad.parquet")
    # the names of scores are read without the numbers
    for read in (RowStore.rows,) if spoil is flipped else (RowStore.rows, RowStore.score_names):
        with pytest.raises(OutputError) as refused:
            read(RowStore(tmp_path))
        assert str(refused.value).startswith(str(tmp_path / "bad.parquet"))
        assert str(refused.value).endswith("move it away and run again")
        assert len(str(refused.value).splitlines()) == 1
    (tmp_path / "bad.parquet").unlink()
    assert set(RowStore(tmp_path).score_names()) == {"0"}


def test_drafts_and_other_files_are_ignored(tmp_path):
    store = RowStore(tmp_path)
    store.add([row()])
    (tmp_path / ".draft.parquet").write_bytes(b"PAR1")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    assert set(store.score_names()) == {"0"}


def test_a_store_that_cannot_be_opened_is_named_in_an_error_of_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for url in (tmp_path / "file", tmp_path / "file/rows", "nowhere://rows"):
        with pytest.raises(OutputError, match="cannot be opened as a store") as refused:
            RowStore(url)
        assert len(str(refused.value).splitlines()) == 1
