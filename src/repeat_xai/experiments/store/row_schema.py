"""Rows ↔ the bytes of a Parquet file, which says itself of which schema it is and whether it is whole."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from repeat_xai.errors import OutputError, reason
from repeat_xai.experiments.store.row import Row

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
"""Of the columns: every later version of the package reads it, and files of a later one are refused."""
MARK = b"repeat-xai rows"
MOST_VALUES = 2**26
"""Of one file: more than this package ever puts into one, and as many as any machine can hold."""
AT_ONCE = 4096
"""Rows read at once."""


class DamagedError(OutputError):
    """A file of rows that cannot be read to its end."""


class Summary(NamedTuple):
    """What tells whether a row needs to be made, and whether another row makes it superfluous."""

    place: int
    """Its number within the rows read at once."""
    key: str
    failed: bool
    names: frozenset[str]
    """Names of its scores."""


SUMMARY = ["key", "scores", "failure"]
"""The columns that a summary is made of."""


def packed(rows: Iterable[Row]) -> bytes:
    """A file of these rows."""
    import pyarrow as pa

    plain = [
        {name: _text(value) if isinstance(value, str) else value for name, value in vars(row).items()}
        | {"scores": [(_text(name), score) for name, score in row.scores.items()], "code": list(row.code)}
        for row in rows
    ]
    return content(pa.Table.from_pylist(plain, schema=_schema()))


def content(table: pa.Table) -> bytes:
    """A file of this table, with a checksum of every page."""
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def parts(content: bytes, name: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """What a file of this content and name holds, some rows at a time; refused in a line if it holds no rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        version = int((file.schema_arrow.metadata or {}).get(MARK, 0))
        _expect(version, name)
        if not file.schema_arrow.equals(_schema()):
            raise ValueError("it has other columns")
        _expect_short(file.metadata)
        rows = 0
        for part in file.iter_batches(AT_ONCE, columns=columns):
            part.validate(full=True)
            _expect_complete(part)
            rows += len(part)
            yield part
        if rows != file.metadata.num_rows:  # Arrow ends early, without an error, at some damaged pages
            raise ValueError(f"{rows} of {file.metadata.num_rows} rows can be read")
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DamagedError(f"{name}: damaged ({reason(error)}); move it away and run again") from error


def summaries(part: pa.RecordBatch) -> Iterator[Summary]:
    """Yield what the columns of `SUMMARY` say of each row."""
    scores = part["scores"]
    encoded = scores.keys.dictionary_encode()
    every_name, numbers = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    ends = scores.offsets.to_numpy()
    sets: dict[bytes, frozenset[str]] = {}  # most rows have scores of the same names
    for place, (key, failure) in enumerate(zip(part["key"].to_pylist(), part["failure"].to_pylist(), strict=True)):
        mine = numbers[ends[place] : ends[place + 1]]
        names = sets.get(mine.tobytes())
        if names is None:
            names = sets[mine.tobytes()] = frozenset(every_name[number] for number in mine)
        yield Summary(place, key, failure is not None, names)


def unpacked(part: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows as they were written."""
    for plain in part.to_pylist():
        yield Row(**plain | {"scores": dict(plain["scores"]), "code": tuple(plain["code"])})


def _expect_complete(part: pa.RecordBatch) -> None:
    """Refuse rows that lack a value: only a failure may be missing."""
    columns = {name: part[name] for name in part.schema.names}
    if "code" in columns:
        columns["values of code"] = columns["code"].flatten()
    if "scores" in columns:
        columns["names of scores"], columns["values of scores"] = columns["scores"].keys, columns["scores"].items
    for name, values in columns.items():
        if values.null_count and name != "failure":
            raise ValueError(f"{values.null_count} {name} missing")


def _expect_short(about: pa.FileMetaData) -> None:
    """Refuse a file that unpacks to very much: a few kilobytes may hold one number a thousand million times."""
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    values = sum(group.column(number).num_values for group in groups for number in range(group.num_columns))
    if values > MOST_VALUES:
        raise ValueError(f"it holds {values:,} values")


def _expect(version: int, name: str) -> None:
    if version == 0:
        raise OutputError(f"{name}: holds no rows of repeat-xai; move it away and run again")
    if version > VERSION:
        raise OutputError(f"{name}: holds rows of schema {version}, this version reads {VERSION}; update repeat-xai")


def _text(text: str) -> str:
    """A name that is no Unicode, as a file's may be, with its odd bytes spelt out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    fields: list[tuple[str, Any]] = [
        *((name, text) for name in ("key", "dataset", "image", "encoder", "method", "measure")),
        ("seed", pa.uint64()),
        ("scores", pa.map_(text, number)),
        ("code", pa.list_(number)),
        ("calls", pa.int64()),
        ("seconds", number),
        ("failure", text),
        ("setting", text),
    ]
    return pa.schema(fields, metadata={MARK: str(VERSION).encode()})
