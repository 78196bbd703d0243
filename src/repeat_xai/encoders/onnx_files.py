"""The files that an ONNX network consists of, checked before ONNX Runtime or anything else opens one of them.

A tensor may say that its values lie in another file. Whoever made the network chose that file's name, so it may lead
anywhere: out of the folder, to a device that never ends, to a FIFO on which reading waits for ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repeat_xai.errors import EncoderError, OutputError, reason
from repeat_xai.files.reading import open_regular

if TYPE_CHECKING:
    import onnx

MAX_PROTOBUF_BYTES = 2**31 - 1
"""Size of the largest protobuf file there can be; larger networks keep their tensors in further files."""
MEMORY_ADDRESS = "_ORT_MEM_ADDR_"
"""A location with this text makes ONNX Runtime take the offset for an address in memory."""


def files_of(path: Path) -> list[Path]:
    """Return the network's file and, sorted, those that hold its tensors; refuse any that is not in its own folder."""
    import onnx

    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_PROTOBUF_BYTES:
                raise EncoderError(f"{path}: is larger than 2 GiB; keep its tensors in further files")
            network = onnx.ModelProto.FromString(file.read())
    except FileNotFoundError as error:
        raise EncoderError(f"{path}: no such ONNX file") from error
    except OutputError as error:
        raise EncoderError(f"{path}: is not a regular file; give an ONNX file") from error
    except EncoderError:
        raise
    except Exception as error:  # protobuf meets damaged files with errors of every kind
        raise EncoderError(f"{path}: cannot be read as an ONNX network ({reason(error)})") from error
    sizes: dict[str, int] = {}
    for tensor in _external(network):
        _expect_inside(path, tensor, sizes)
    return [path, *(path.parent / name for name in sorted(sizes))]


def _external(network: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor that names a file, wherever it is: in a node, a subgraph, a function, or unused."""
    import onnx

    messages: list[Any] = [network]
    while messages:
        message = messages.pop()
        if isinstance(message, onnx.TensorProto):
            if message.external_data or message.data_location == onnx.TensorProto.EXTERNAL:
                yield message
            continue
        for field, value in message.ListFields():
            if field.message_type is not None:
                messages.extend([value] if hasattr(value, "ListFields") else value)


def _expect_inside(path: Path, tensor: onnx.TensorProto, sizes: dict[str, int]) -> None:
    """Refuse a tensor whose file is elsewhere or too short; add the size of its file to `sizes`, by location."""
    name, entries = tensor.name[:100], {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if len(entries) < len(tensor.external_data):
        raise EncoderError(f"{path}: its tensor {name!r} says twice where its values are; export it again")
    if location not in sizes:
        sizes[location] = _size_inside(path, location, name)
    first, count = (entries.get(key, "0") for key in ("offset", "length"))
    if not all(number.isascii() and number.isdecimal() and len(number) < 20 for number in (first, count)):
        raise EncoderError(f"{path}: its tensor {name!r} says by no number where its values are; export it again")
    if int(first) + int(count) > sizes[location]:
        raise EncoderError(f"{path}: {location[:100]!r} ends before the values of tensor {name!r}; copy it again")


def _size_inside(path: Path, location: str, name: str) -> int:
    """Return the size in bytes of the file at a location beside the network; refuse a location that is elsewhere."""
    folders = (path.parent.resolve(), path.resolve().parent)  # a cache may hold links to both files in another folder
    try:
        target = (path.parent / location).resolve()
        inside = not Path(location).is_absolute() and any(target.is_relative_to(folder) for folder in folders)
        if not inside or "\\" in location or MEMORY_ADDRESS in location or not target.is_file():
            raise ValueError("it is no regular file in the network's folder")
        return target.stat().st_size
    except (OSError, ValueError, RuntimeError) as error:  # a link may lead to itself, a name be one no system takes
        raise EncoderError(
            f"{path}: tensor {name!r} is kept in {location[:100]!r}, which is no regular file in the network's folder; "
            "put it there"
        ) from error
