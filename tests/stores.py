"""Rows and maps to be stored, and functions that other processes run on a store."""

import multiprocessing
import os
import signal
import struct
from dataclasses import fields

import numpy as np
import torch

from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.store.store_folder import StoreFolder
from repeat_xai.types import Explanation, Photo

forkserver = multiprocessing.get_context("forkserver")
"""The context of processes that start quickly, because they are forked from one that has imported the package."""
forkserver.set_forkserver_preload(
    [
        "repeat_xai.experiments.executors.executor",
        "pyarrow.parquet",
        "pyarrow.compute",
        "zarr",
        "fsspec",
        "onnx",
        "onnxruntime",
    ]
)


def row(key="0", **changes):
    """Return a row with made-up values, apart from the changes."""
    plain = {"dataset": "d", "image": key, "encoder": "e", "method": "m", "measure": "Maps", "seed": 0, "setting": "{}"}
    return Row(key=key, **plain | changes)


def rows_of(scores):
    """Return a function from a setting to its rows.

    The keys of `scores` are the dataset, whether the encoder is randomised, and the seed; its values are lists of the
    scores of each image, or None for an image that failed.
    """

    def rows(setting):
        key = (setting.dataset, setting.encoder_spec.randomise is not None, setting.seed)
        return [None if values is None else row(str(n), scores=values) for n, values in enumerate(scores[key])]

    return rows


def bits(row, *, but=()):
    """Return the fields of a row such that two are equal only if every bit of their numbers is equal."""
    return {field.name: _bits(getattr(row, field.name)) for field in fields(row) if field.name not in but}


def _bits(value):
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return [(name, _bits(part)) for name, part in value.items()]
    return [_bits(part) for part in value] if isinstance(value, tuple) else value


def add_and_merge(url, name, files, connection):
    """Add rows of this name, each in a file of its own, and send the key of each once it is stored."""
    store = RowStore(url)
    for number in range(files):
        store.add([row(f"{name}-{number}", code=(float(number),))])
        connection.send(f"{name}-{number}")
        if number % 3 == 2:
            store.merge(at_least=2)
    connection.close()


def merge_and_die(url):
    """Merge files, and be killed once the merged file is written and one of its parts is removed."""
    _die_at_the_first_removal()
    RowStore(url).merge(at_least=2)


def compact_and_die(url):
    """Remove rows that are stored twice, and be killed once the first file that held some is removed."""
    _die_at_the_first_removal()
    RowStore(url).compact()


def _die_at_the_first_removal():
    remove = StoreFolder.remove

    def removed(folder, name):
        remove(folder, name)
        os.kill(os.getpid(), signal.SIGKILL)

    StoreFolder.remove = removed


def explanation(value, size=(6, 5)):
    """Return an explanation of three maps: of one value, its half and its quarter, or of the maps given."""
    maps = [torch.full(size, value / parts) for parts in (1, 2, 4)] if isinstance(value, float) else value
    photo = Photo(name="p", picture=np.zeros((6, 5, 3), np.uint8), size=(6, 5), box=(0.0, 0.0, 5.0, 6.0), digest="")
    return Explanation(importance=maps[0], uncertainty=maps[1], vote_share=maps[2], photo=photo, provenance={})


def write_maps(url, numbers, start):
    """Write the maps of these rows, as soon as the other processes are ready too."""
    start.wait()
    for number in numbers:
        MapStore(url).write(f"row{number}", f"{number}.png", explanation(float(number + 1)))
