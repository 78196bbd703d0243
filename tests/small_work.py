"""Small work for executors: an encoder in a file, pictures in a folder, and measures that misbehave."""

import os
import signal
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import PIL.Image
from onnx import TensorProto, helper

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments import making_rows
from repeat_xai.experiments.executors.executor import Local, Work
from repeat_xai.experiments.executors.processes import Processes
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.measures import Codes, Measured, measure_each
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat

SIDE = 32


def network(folder: Path) -> EncoderSpec:
    """Write an ONNX file whose code is the means of 8×8 pixels, and return the spec of that encoder."""
    pool = helper.make_node("AveragePool", ["images"], ["pooled"], kernel_shape=[8, 8], strides=[8, 8])
    flat = helper.make_node("Flatten", ["pooled"], ["codes"])
    ends = (("images", ["n", 3, SIDE, SIDE]), ("codes", ["n", 48]))
    images, codes = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends)
    graph = helper.make_graph([pool, flat], "means", [images], [codes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "means.onnx")
    return EncoderSpec(name=f"onnx:{folder / 'means.onnx'}")


def pictures(folder: Path, count: int) -> str:
    """Create a folder with this number of random pictures, and return its path."""
    folder.mkdir()
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number:04}.png")
    return str(folder)


PICTURES = 12
"""Number of readable pictures in the work that the tests of executors share."""


def work_in(folder: Path, count: int, *, masks: int = 64) -> list[Work]:
    """Return work for RELAX, REPEAT and codes on a folder of `count` pictures and one that cannot be read."""
    dataset = pictures(folder / "pictures", count)
    (folder / "pictures" / "bad.png").write_bytes(b"no picture")
    relax = Relax(masks=masks)
    base = Setting(dataset=dataset, encoder_spec=network(folder), method=relax, protocol="encoder")
    exact = replace(base, method=Repeat(base=relax, estimator="exact", repeats=2), seed=2**64 - 1)
    return [Work(setting, list(range(count + 1))) for setting in (base, exact, replace(base, measure=Codes()))]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Waits at each picture; its scores are the time and the process."""

    explains: ClassVar[bool] = False
    seconds: float = 0.0

    def __call__(self, encoder, method, tasks, *, seed):
        def wait(_):
            began = time.time()
            time.sleep(self.seconds)
            return Measured(scores={"began": began, "process": float(os.getpid())})

        return measure_each(tasks, wait)


@dataclass(frozen=True, kw_only=True)
class Deadly:
    """Kills its own process at one picture, `times` times; each death leaves a file."""

    explains: ClassVar[bool] = False
    picture: str
    times: int
    deaths: str

    def __call__(self, encoder, method, tasks, *, seed):
        def die_or_measure(image):
            deaths = len(list(Path(self.deaths).iterdir()))
            if image.photo.name.startswith(self.picture) and deaths < self.times:
                (Path(self.deaths) / str(deaths)).write_text("")
                os.kill(os.getpid(), signal.SIGKILL)
            return Measured(scores={"mean": float(image.pixels.mean())})

        return measure_each(tasks, die_or_measure)


@dataclass(frozen=True, kw_only=True)
class Faulty:
    """Warns, refuses, or fails with an error that no measure should raise."""

    explains: ClassVar[bool] = False
    way: str

    def __call__(self, encoder, method, tasks, *, seed):
        for number, task in enumerate(tasks):
            if self.way == "warns":
                warnings.warn("too coarse", stacklevel=1)
            elif number == 1 and self.way == "refuses":
                raise ConfigurationError("this setting makes no sense")
            elif number == 1:
                raise ZeroDivisionError("by nothing")
            yield task.tag, Measured(scores={"number": float(number)})


def resume(folder, work, connection):
    """Make the rows of the work that a store lacks, each in a file of its own, and send the key of each."""
    making_rows.SECONDS_PER_FILE, making_rows.FILES_BETWEEN_MERGES = 0.0, 4
    worker, store = Worker(device="cpu", root=folder), RowStore(folder / "rows")
    numbers = {part.setting.dataset: part.numbers for part in work}
    left = making_rows.missing_work({part.setting: () for part in work}, numbers, store, worker)
    for row in making_rows.make_rows(left, store, Local(worker=worker)):
        connection.send(row.key)
    connection.close()


def work_for_ever(executor, setting, connection, stderr):
    """Make rows with two workers, in a process group of its own; send the workers' ids once both are at work.

    Everything that is written to standard error goes to the file `stderr`.
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run where it is ignored
    paths = (str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")]))
    os.environ |= {"HOME": str(Path(stderr).parent), "PYTHONPATH": os.pathsep.join(paths)}
    os.dup2(os.open(stderr, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 2)
    worker = Worker(device="cpu", root=Path())
    executors = {
        "processes": lambda: Processes(worker=worker, batch_size=1),
        "ray": lambda: RayExecutor(worker=worker, workers=2, batch_size=1),
    }
    seen = set()
    for row in executors[executor]().rows([Work(setting, [0, 1])] * 10_000):
        seen.add(int(row.scores["process"]))
        if len(seen) == 2 and connection is not None:
            connection.send(seen)
            connection = None
