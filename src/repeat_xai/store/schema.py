"""Rows ↔ the bytes of a Parquet file, which says itself of which schema it is and whether it is whole."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from repeat_xai.errors import OutputError, reason
from repeat_xai.store.row import Row

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
"""Of the columns: every later version of the package reads it, and files of a later one are refused."""
MARK = b"repeat-xai rows"
AT_ONCE = 4096
"""Rows read at once."""


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
        if file.schema_arrow.names != _schema().names:
            raise ValueError("its columns are others")
        yield from file.iter_batches(AT_ONCE, columns=columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise OutputError(f"{name}: damaged ({reason(error)}); move it away and run again") from error


def unpacked(part: pa.RecordBatch) -> Iterator[Row]:
    """The rows as they were."""
    for plain in part.to_pylist():
        yield Row(**plain | {"scores": dict(plain["scores"]), "code": tuple(plain["code"])})


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
