"""The row of one image under one setting, and the Parquet files that hold rows.

Every file carries the version of its columns and the number of its rows, so that a file of a later version, or one that
is damaged, is recognised.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, final

from repeat_xai.errors import ConfigurationError, OutputError, reason
from repeat_xai.seeds import SEEDS

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1
"""Version of the columns. Every later version of the package reads it, and files of a later version are refused."""
VERSION_KEY = b"repeat-xai rows"
"""Name of the entry of a file's metadata that holds the version of its columns."""
MAX_VALUES = 2**26
"""Largest number of values in one file: more than this package writes into one, and few enough for any memory."""
ROWS_PER_BATCH = 4096
"""Number of rows that are read from a file at a time."""
SUMMARY_COLUMNS = ["key", "scores", "failure"]
"""The columns that a `RowSummary` is made of."""


class DamagedError(OutputError):
    """A file of rows cannot be read to its end."""


@final
@dataclass(frozen=True, kw_only=True)
class Row:
    """The numbers of one image under one setting, and what they were computed from."""

    key: str
    """A hash of the image and the whole setting: two rows of one key hold the same results."""
    dataset: str
    image: str
    encoder: str
    method: str
    measure: str
    seed: int
    scores: Mapping[str, float] = field(default_factory=dict)
    """Values by name; an undefined value is NaN."""
    code: tuple[float, ...] = ()
    calls: int = 0
    seconds: float = 0.0
    failure: str | None = None
    """The reason why there are no numbers."""
    setting: str
    """The whole setting as JSON."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEEDS:
            raise ConfigurationError(f"a row keeps seeds from 0 to 2⁶⁴ − 1, not {self.seed}")


class RowSummary(NamedTuple):
    """The parts of a row that decide whether it must be made again and whether another row makes it superfluous."""

    position: int
    """Position of the row among those read together."""
    key: str
    failed: bool
    names: frozenset[str]
    """Names of the row's scores."""


def parquet_of_rows(rows: Iterable[Row]) -> bytes:
    """Return the content of a Parquet file that holds these rows."""
    import pyarrow as pa

    plain = [
        {name: _valid_unicode(value) if isinstance(value, str) else value for name, value in vars(row).items()}
        | {"scores": [(_valid_unicode(name), score) for name, score in row.scores.items()], "code": list(row.code)}
        for row in rows
    ]
    return parquet_of_table(pa.Table.from_pylist(plain, schema=_schema()))


def parquet_of_table(table: pa.Table) -> bytes:
    """Return the content of a Parquet file that holds this table, with a checksum of every page."""
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def read_batches(content: bytes, name: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, some at a time.

    Raise an OutputError that begins with the file's `name` if the content is damaged or holds no rows of this package.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        version = int((file.schema_arrow.metadata or {}).get(VERSION_KEY, 0))
        _expect_known_version(version, name)
        if not file.schema_arrow.equals(_schema()):
            raise ValueError("it has other columns")
        _expect_few_values(file.metadata)
        rows = 0
        for batch in file.iter_batches(ROWS_PER_BATCH, columns=columns):
            batch.validate(full=True)
            _expect_complete(batch)
            rows += len(batch)
            yield batch
        if rows != file.metadata.num_rows:  # Arrow ends early, without an error, at some damaged pages
            raise ValueError(f"{rows} of {file.metadata.num_rows} rows can be read")
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DamagedError(f"{name}: damaged ({reason(error)}); move it away and run again") from error


def summaries_in(batch: pa.RecordBatch) -> Iterator[RowSummary]:
    """Yield the summary of each row of a batch that was read with the columns `SUMMARY_COLUMNS`."""
    scores = batch["scores"]
    encoded = scores.keys.dictionary_encode()
    all_names, indices = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    offsets = scores.offsets.to_numpy()
    name_sets: dict[bytes, frozenset[str]] = {}  # most rows have scores of the same names, and share one set
    failures = batch["failure"].to_pylist()
    for position, (key, failure) in enumerate(zip(batch["key"].to_pylist(), failures, strict=True)):
        own_indices = indices[offsets[position] : offsets[position + 1]]
        names = name_sets.get(own_indices.tobytes())
        if names is None:
            names = name_sets[own_indices.tobytes()] = frozenset(all_names[index] for index in own_indices)
        yield RowSummary(position, key, failure is not None, names)


def rows_in(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of a batch as they were written."""
    for plain in batch.to_pylist():
        yield Row(**plain | {"scores": dict(plain["scores"]), "code": tuple(plain["code"])})


def _expect_complete(batch: pa.RecordBatch) -> None:
    """Raise an error if a value is missing in a column other than `failure`."""
    columns = {name: batch[name] for name in batch.schema.names}
    if "code" in columns:
        columns["values of code"] = columns["code"].flatten()
    if "scores" in columns:
        columns["names of scores"], columns["values of scores"] = columns["scores"].keys, columns["scores"].items
    for name, values in columns.items():
        if values.null_count and name != "failure":
            raise ValueError(f"{values.null_count} {name} missing")


def _expect_few_values(metadata: pa.FileMetaData) -> None:
    """Raise an error if a file has very many values: a few kilobytes may hold one number a thousand million times."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    values = sum(group.column(number).num_values for group in groups for number in range(group.num_columns))
    if values > MAX_VALUES:
        raise ValueError(f"it holds {values:,} values")


def _expect_known_version(version: int, name: str) -> None:
    """Raise an error if the columns of a file have no version or a later one."""
    if version == 0:
        raise OutputError(f"{name}: holds no rows of repeat-xai; move it away and run again")
    if version > SCHEMA_VERSION:
        raise OutputError(
            f"{name}: holds rows of schema {version}, this version reads {SCHEMA_VERSION}; update repeat-xai"
        )


def _valid_unicode(text: str) -> str:
    """Return a text with surrogates escaped: the name of a file may hold bytes that are not Unicode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _schema() -> pa.Schema:
    """Return the columns of a file of rows."""
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
    return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()})
