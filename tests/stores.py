"""Rows to be stored, and what other processes do to a store."""

import multiprocessing
import os
import signal
import struct
from dataclasses import fields

import numpy as np
import torch

from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row import Row
from repeat_xai.experiments.store.row_store import Store
from repeat_xai.experiments.store.store_folder import Folder
from repeat_xai.types import Explanation, Photo

quickly = multiprocessing.get_context("forkserver")
"""Real processes, forked from one that has the package at hand."""
quickly.set_forkserver_preload(
    [
        "repeat_xai.experiments.executors.local",
        "pyarrow.parquet",
        "pyarrow.compute",
        "zarr",
        "fsspec",
        "onnx",
        "onnxruntime",
    ]
)


def row(key="0", **changes):
    plain = {"dataset": "d", "image": key, "encoder": "e", "method": "m", "measure": "Maps", "seed": 0, "setting": "{}"}
    return Row(key=key, **plain | changes)


def bits(row, *, but=()):
    """A row such that two are equal only if every bit of their numbers is."""
    return {field.name: _bits(getattr(row, field.name)) for field in fields(row) if field.name not in but}


def _bits(value):
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return [(name, _bits(part)) for name, part in value.items()]
    return [_bits(part) for part in value] if isinstance(value, tuple) else value


def add_and_merge(url, name, files, told):
    """Rows of this name, a file each; each told of when it is there."""
    store = Store(url)
    for number in range(files):
        store.add([row(f"{name}-{number}", code=(float(number),))])
        told.send(f"{name}-{number}")
        if number % 3 == 2:
            store.merge(at_least=2)
    told.close()


def merge_and_die(url):
    """Merge files, and be killed when the merged file is written and one of its parts removed."""
    _die_at_the_first_removal()
    Store(url).merge(at_least=2)


def compact_and_die(url):
    """Remove rows that are there twice, and be killed when the first file that held some is removed."""
    _die_at_the_first_removal()
    Store(url).compact()


def _die_at_the_first_removal():
    remove = Folder.remove

    def removed(folder, name):
        remove(folder, name)
        os.kill(os.getpid(), signal.SIGKILL)

    Folder.remove = removed


def explanation(value, size=(6, 5)):
    """Return an explanation of three maps: of one value, its half and its quarter, or of the values given for each."""
    maps = [torch.full(size, value / parts) for parts in (1, 2, 4)] if isinstance(value, float) else value
    photo = Photo(name="p", picture=np.zeros((6, 5, 3), np.uint8), size=(6, 5), box=(0.0, 0.0, 5.0, 6.0), digest="")
    return Explanation(importance=maps[0], uncertainty=maps[1], vote_share=maps[2], photo=photo, provenance={})


def write_maps(url, numbers, start):
    """When the others are ready too."""
    start.wait()
    for number in numbers:
        MapStore(url).write(f"row{number}", f"{number}.png", explanation(float(number + 1)))
