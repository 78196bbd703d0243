"""Small work for workers of every kind: an encoder in a file, pictures in a folder, and measures that misbehave."""

import os
import signal
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import PIL.Image
from onnx import TensorProto, helper

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments import making_rows as run
from repeat_xai.experiments.executors.local import Local
from repeat_xai.experiments.executors.processes import Processes
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.making_rows import Work
from repeat_xai.experiments.measures import Codes, Measured
from repeat_xai.experiments.settings import Network, Setting
from repeat_xai.experiments.store.row_store import Store
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat

SIDE = 32


def network(folder: Path) -> Network:
    """The means of 8×8 pixels as a code, in an ONNX file."""
    pool = helper.make_node("AveragePool", ["images"], ["pooled"], kernel_shape=[8, 8], strides=[8, 8])
    flat = helper.make_node("Flatten", ["pooled"], ["codes"])
    ends = (("images", ["n", 3, SIDE, SIDE]), ("codes", ["n", 48]))
    images, codes = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends)
    graph = helper.make_graph([pool, flat], "means", [images], [codes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "means.onnx")
    return Network(name=f"onnx:{folder / 'means.onnx'}")


def pictures(folder: Path, count: int) -> str:
    folder.mkdir()
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number:04}.png")
    return str(folder)


PICTURES = 12
"""Of the work that executors share."""


def work_in(folder: Path, count: int, *, masks: int = 64) -> list[Work]:
    """REPEAT, RELAX and codes of so many pictures; one more cannot be read."""
    dataset = pictures(folder / "pictures", count)
    (folder / "pictures" / "bad.png").write_bytes(b"no picture")
    relax = Relax(masks=masks)
    base = Setting(dataset=dataset, network=network(folder), method=relax, protocol="encoder")
    exact = replace(base, method=Repeat(base=relax, estimator="exact", repeats=2), seed=2**64 - 1)
    return [Work(setting, list(range(count + 1))) for setting in (base, exact, replace(base, measure=Codes()))]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Takes its time, and tells when and where."""

    explains: ClassVar[bool] = False
    seconds: float = 0.0

    def __call__(self, encoder, method, tasks, *, seed):
        for task in tasks:
            began = time.time()
            time.sleep(self.seconds)
            yield task.tag, Measured(scores={"began": began, "process": float(os.getpid())})


@dataclass(frozen=True, kw_only=True)
class Deadly:
    """Kills its own process at one picture, so many times; each death leaves a file."""

    explains: ClassVar[bool] = False
    picture: str
    times: int
    deaths: str

    def __call__(self, encoder, method, tasks, *, seed):
        for task in tasks:
            deaths = len(list(Path(self.deaths).iterdir()))
            if task.image.photo.name.startswith(self.picture) and deaths < self.times:
                (Path(self.deaths) / str(deaths)).write_text("")
                os.kill(os.getpid(), signal.SIGKILL)
            yield task.tag, Measured(scores={"mean": float(task.image.pixels.mean())})


@dataclass(frozen=True, kw_only=True)
class Faulty:
    """Warns, refuses, or fails as no measure should."""

    explains: ClassVar[bool] = False
    way: str

    def __call__(self, encoder, method, tasks, *, seed):
        for number, task in enumerate(tasks):
            if self.way == "warns":
                warnings.warn("too coarse", stacklevel=1)
            elif number == 1 and self.way == "refuses":
                raise ConfigurationError("asked for what makes no sense")
            elif number == 1:
                raise ZeroDivisionError("by nothing")
            yield task.tag, Measured(scores={"number": float(number)})


def resumed(folder, work, told):
    """What a store lacks of the work, a file a row; each row told of when it is made."""
    run.EVERY, run.OFTEN = 0.0, 4
    worker, store = Worker(device="cpu", root=folder), Store(folder / "rows")
    numbers = {part.setting.dataset: part.numbers for part in work}
    left = run.missing({part.setting: () for part in work}, numbers, store, worker)
    for row in run.run(left, store, Local(worker=worker)):
        told.send(row.key)
    told.close()


def go_on_for_ever(crew, setting, told, said):
    """Two workers at work in a group of this process's own, told of when both are; what all say goes to a file."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run where it is ignored
    os.environ |= {"HOME": str(Path(said).parent), "PYTHONPATH": str(Path(__file__).parent)}
    os.dup2(os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 2)
    worker = Worker(device="cpu", root=Path())
    made = Processes(worker=worker, batch=1) if crew == "processes" else RayExecutor(worker=worker, workers=2, batch=1)
    seen = set()
    for row in made.rows([Work(setting, [0, 1])] * 10_000):
        seen.add(int(row.scores["process"]))
        if len(seen) == 2 and told is not None:
            told.send(seen)
            told = None


def children(pid):
    """Every process that this one started, and those that they did."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def ended(pids, seconds=20.0):
    """Whether all have by then."""
    until = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def listening(pids):
    """The addresses on which these processes wait for connections, as the kernel writes them."""
    mine = set()
    for pid in pids:
        with suppress(OSError):
            mine |= {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in mine:
                found.add(fields[1].partition(":")[0])
    return found
