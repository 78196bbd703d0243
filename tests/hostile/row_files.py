"""Files of rows that no run writes, each made by changing one thing in a file that a run has written."""

import struct

import pyarrow as pa
import pyarrow.parquet as pq

from repeat_xai.experiments.store.row_schema import VERSION_KEY

HUGE = 2**62


def changed(change):
    """Rewrite the table in a file by a function of the table."""

    def damage(path):
        table = change(pq.read_table(path))
        pq.write_table(table, path, compression="zstd", write_page_checksum=True)

    return damage


def with_column(name, values, *, kind=None):
    """Give every row the same other value in one column."""

    def change(table):
        field = table.schema.field(name) if kind is None else pa.field(name, kind)
        column = pa.array([values] * len(table), field.type)
        place = table.schema.get_field_index(name)
        return table.set_column(place, field, column).replace_schema_metadata(table.schema.metadata)

    return changed(change)


def without(name):
    return changed(lambda table: table.drop_columns([name]))


def with_extra_column(table):
    return table.append_column("more", pa.array(range(len(table)), pa.int64()))


def of_version(text):
    return changed(lambda table: table.replace_schema_metadata({VERSION_KEY: text}))


def without_rows(path):
    """Write a valid file without rows."""
    changed(lambda table: table.slice(0, 0))(path)


def doubled(path):
    """Write every row three times into one file."""
    changed(lambda table: pa.concat_tables([table] * 3))(path)


def with_one_null(name):
    """Remove a value of one row."""

    def change(table):
        values = table[name].to_pylist()
        column = pa.array([None, *values[1:]], table.schema.field(name).type)
        return table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)

    return changed(change)


def not_unicode(path):
    """Write text whose bytes are not UTF-8, which Arrow does without an error."""

    def change(table):
        bad = pa.array([b"\xff\xfe"] * len(table), pa.binary()).view(pa.string())
        return table.set_column(table.schema.get_field_index("key"), "key", bad)

    changed(change)(path)


def with_footer(change):
    """Change the bytes of the footer, which holds the positions of everything in the file."""

    def damage(path):
        content = path.read_bytes()
        (length,) = struct.unpack("<I", content[-8:-4])
        footer = change(content[-8 - length : -8])
        path.write_bytes(content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1")

    return damage


def with_footer_length(length):
    """Change the stated length of the footer."""
    return lambda path: path.write_bytes(path.read_bytes()[:-8] + struct.pack("<I", length) + b"PAR1")


def announcing_rows(path):
    """Make the footer announce very many rows and bytes in its row group."""

    def change(footer):
        for bytes_of_number in (_varint(n) for n in range(1, 60)):
            field = b"\x16" + bytes_of_number  # a field of 64 bits, whose number is one higher than the last
            footer = footer.replace(field, b"\x16" + _varint(HUGE))
        return footer

    with_footer(change)(path)


def _varint(number):
    """Return a number as Thrift writes it: zigzag, seven bits a byte."""
    number, encoded = 2 * number, bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def bomb(path):
    """Write a list of seventy million zeros, which takes some kilobytes."""
    schema = pq.read_schema(path)
    plain = pq.read_table(path).slice(0, 1).to_pydict()
    zeros = pa.repeat(pa.scalar(0.0), 70_000_000)
    code = pa.ListArray.from_arrays(pa.array([0, len(zeros)], pa.int32()), zeros)
    arrays = [code if field.name == "code" else pa.array(plain[field.name], field.type) for field in schema]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, compression="zstd", write_page_checksum=True)
