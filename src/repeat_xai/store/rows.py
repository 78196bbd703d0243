"""Rows in Parquet files that are written once, whole, and never changed: a folder of them is a store.

A run writes files of its own, so that runs side by side, or killed, can spoil nothing: what is there is whole. Small
files are merged now and then, the merged file written before its parts are taken away; a row found twice counts once,
and one with numbers before a failure. The folder may be on a disk, or be any URL that fsspec knows.
"""

from __future__ import annotations

import contextlib
import io
import uuid
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from repeat_xai.errors import OutputError, reason
from repeat_xai.files import writing
from repeat_xai.store.row import Row

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
"""Of the schema: files of a later one are refused."""
MARK = b"repeat-xai rows"
LARGE = 50_000
"""Rows of a file that is merged no more."""
MANY = 16
"""Small files from which merging pays."""


@final
class Store:
    """A folder of rows."""

    def __init__(self, url: str | Path) -> None:
        import fsspec

        try:
            self._files, self._path = fsspec.core.url_to_fs(str(url))
            self._files.makedirs(self._path, exist_ok=True)
        except (OSError, ValueError, ImportError) as error:
            raise OutputError(f"{url}: cannot be opened as a store ({reason(error)})") from error
        self.url = str(url)

    def add(self, rows: Collection[Row]) -> None:
        """Write rows: all of them, or in case of a failure none."""
        if rows:
            self._write(_table(rows))

    def done(self) -> set[str]:
        """The keys of rows with numbers."""
        found: set[str] = set()
        for table in self._tables(["key", "failure"]):
            pairs = zip(table["key"].to_pylist(), table["failure"].to_pylist(), strict=True)
            found.update(key for key, failure in pairs if failure is None)
        return found

    def rows(self, keys: Collection[str] | None = None) -> dict[str, Row]:
        """The rows of these keys, or all."""
        found: dict[str, Row] = {}
        for table in self._tables(None):
            for row in _rows(table, keys):
                if row.key not in found or found[row.key].failure is not None:
                    found[row.key] = row
        return found

    def merge(self, *, at_least: int = MANY) -> None:
        """Make one file of the small ones, where there are so many."""
        import pyarrow as pa

        parts: list[str] = []
        tables: list[pa.Table] = []
        for name in self._names():
            with contextlib.suppress(FileNotFoundError):  # another run has merged it
                table = self._read(name, None)
                if len(table) < LARGE and sum(map(len, tables)) < LARGE:
                    parts.append(name)
                    tables.append(table)
        if len(parts) < max(2, at_least):
            return
        best: dict[str, Row] = {}
        for row in _rows(pa.concat_tables(tables), None):
            if row.key not in best or best[row.key].failure is not None:
                best[row.key] = row
        self._write(_table(list(best.values())))
        for name in parts:
            with contextlib.suppress(FileNotFoundError):
                self._files.rm_file(name)

    def _tables(self, columns: list[str] | None) -> Iterator[pa.Table]:
        """Every file; one that another run merges meanwhile is found again in what it became."""
        seen: set[str] = set()
        while True:
            lost = False
            for name in self._names():
                if name not in seen:
                    try:
                        table = self._read(name, columns)
                    except FileNotFoundError:
                        lost = True
                        continue
                    seen.add(name)
                    yield table
            if not lost:
                return

    def _names(self) -> list[str]:
        try:
            names = self._files.ls(self._path, detail=False)
        except OSError as error:
            raise OutputError(f"{self.url}: cannot be read ({reason(error)})") from error
        return sorted(name for name in names if name.endswith(".parquet"))

    def _read(self, name: str, columns: list[str] | None) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        content = self._files.cat_file(name)
        try:
            file = pq.ParquetFile(io.BytesIO(content))
            version = (file.schema_arrow.metadata or {}).get(MARK)
            if version is not None and int(version) <= VERSION:
                return file.read(columns=columns)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise OutputError(f"{name}: damaged ({reason(error)}); move it away and run again") from error
        said = "no rows of repeat-xai" if version is None else f"rows of schema {version.decode()}"
        raise OutputError(f"{name}: holds {said}; this version reads schema {VERSION}")

    def _write(self, table: pa.Table) -> None:
        import pyarrow.parquet as pq
        from fsspec.implementations.local import LocalFileSystem

        content = io.BytesIO()
        pq.write_table(table, content, compression="zstd")
        name = f"{self._path.rstrip('/')}/{uuid.uuid4().hex}.parquet"
        if isinstance(self._files, LocalFileSystem):
            with writing(Path(name)) as draft:
                draft.write_bytes(content.getvalue())
            return
        try:
            self._files.pipe_file(name, content.getvalue())  # an object appears whole or not at all
        except OSError as error:
            raise OutputError(f"{name}: cannot be written ({reason(error)})") from error


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


def _table(rows: Iterable[Row]) -> pa.Table:
    import pyarrow as pa

    plain = [vars(row) | {"scores": list(row.scores.items()), "code": list(row.code)} for row in rows]
    return pa.Table.from_pylist(plain, schema=_schema())


def _rows(table: pa.Table, keys: Collection[str] | None) -> Iterator[Row]:
    for plain in table.to_pylist():
        if keys is None or plain["key"] in keys:
            yield Row(**plain | {"scores": dict(plain["scores"]), "code": tuple(plain["code"])})
