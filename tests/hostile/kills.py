"""Kill processes while they write, and see what they had written when they died.

A killed command costs no start: it is forked from a process that has already imported the package.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from stores import forkserver

from repeat_xai.experiments import making_rows as run
from repeat_xai.files.atomic import writing

MOST_SECONDS = 120.0
"""A command that neither ends nor gets as far as it should within this time hangs."""

forkserver.set_forkserver_preload(
    [
        *(
            "repeat_xai.cli.explain",
            "repeat_xai.cli.screen",
            "repeat_xai.cli.evaluate",
            "repeat_xai.experiments.executors.local",
        ),
        *("pyarrow.parquet", "pyarrow.compute", "zarr", "fsspec", "onnx", "onnxruntime", "matplotlib.font_manager"),
    ]
)


class Death(NamedTuple):
    """How a command died, and what it left."""

    killed: bool
    """False where the command had ended before the kill."""
    left: frozenset[Path]
    """Every file below the folder at the moment of death."""


class Command:
    """`repeat-xai` with these arguments, begun in a process of its own; what it says goes to a file.

    `prepare` is called in that process before the command is run.
    """

    def __init__(self, arguments: Sequence[object], said: Path, prepare: Callable[[], None] | None = None) -> None:
        self.said = said
        plain = [str(part) for part in arguments]
        self._process = forkserver.Process(target=_run, args=(plain, said, prepare), daemon=True)
        self._process.start()

    def ended(self) -> bool:
        """Say whether the command has ended."""
        return self._process.exitcode is not None

    def finish(self, seconds: float = MOST_SECONDS) -> int:
        """Wait for the command to end, and return its exit status."""
        self._process.join(seconds)
        assert self.ended(), f"a hang: {self.said.read_text()}"
        return int(self._process.exitcode)

    def kill(self) -> bool:
        """Send SIGKILL, and say whether that is what ended the command."""
        self._process.kill()
        self._process.join()
        return self._process.exitcode == -signal.SIGKILL


def kill_when(command: Command, reached: Callable[[], bool], folder: Path, *, delay: float = 0.0) -> Death:
    """Kill a command so many seconds after `reached()` is true for the first time, and list what is in the folder.

    A command that ends before has not been killed.
    """
    until = time.monotonic() + MOST_SECONDS
    while not reached() and not command.ended():
        assert time.monotonic() < until, f"a hang: {command.said.read_text()}"
        time.sleep(0.001)
    command._process.join(delay)
    killed = command.kill()
    return Death(killed, frozenset(files_below(folder)))


def files_below(folder: Path) -> list[Path]:
    """All files below a folder that may be changing, hidden ones too."""
    found: list[Path] = []
    for root, _, names in os.walk(folder):
        found += [Path(root) / name for name in names]
    return found


def delays(seed: int, longest: float) -> Callable[[], float]:
    """Return a function that gives a random number of seconds, at most `longest`, at each call."""
    chance = random.Random(seed)
    return lambda: chance.random() * longest


def write_and_wait(path: Path, told: object) -> None:
    """Begin a file, tell the name of its draft, and wait to be killed."""
    with writing(path) as draft:
        draft.write_text("half")
        told.send(draft.name)
        time.sleep(MOST_SECONDS)


def write_every_row() -> None:
    """Let `evaluate` write each row as soon as it is made, to a file of its own, and merge four of them."""
    run.SECONDS_PER_FILE, run.FILES_BETWEEN_MERGES = -1.0, 4


def _run(arguments: list[str], said: Path, prepare: Callable[[], None] | None) -> None:
    from repeat_xai.cli import main

    if prepare is not None:
        prepare()
    descriptor = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(BrokenPipeError):
        main(arguments)
    sys.exit(0)
