"""Commands that are killed while they write, and the files that they leave.

Starting a command takes little time, because it is forked from a process that has already imported the package.
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

TIMEOUT = 120.0
"""Seconds after which a command that does not end, or does not reach a state, counts as a hang."""

forkserver.set_forkserver_preload(
    [
        *(
            "repeat_xai.cli.explain",
            "repeat_xai.cli.screen",
            "repeat_xai.cli.evaluate",
            "repeat_xai.experiments.executors.executor",
        ),
        *("pyarrow.parquet", "pyarrow.compute", "zarr", "fsspec", "onnx", "onnxruntime", "matplotlib.font_manager"),
    ]
)


class Kill(NamedTuple):
    """The outcome of a kill."""

    killed: bool
    """False if the command had ended before it was killed."""
    files: frozenset[Path]
    """All files below the folder at that moment."""


class Command:
    """`repeat-xai` with these arguments, run in a process of its own; its output goes to a file.

    `prepare` is called in that process before the command is run.
    """

    def __init__(self, arguments: Sequence[object], output: Path, prepare: Callable[[], None] | None = None) -> None:
        self.output = output
        plain = [str(part) for part in arguments]
        self._process = forkserver.Process(target=_run, args=(plain, output, prepare), daemon=True)
        self._process.start()

    def ended(self) -> bool:
        """Return whether the command has ended."""
        return self._process.exitcode is not None

    def finish(self, seconds: float = TIMEOUT) -> int:
        """Wait for the command to end, and return its exit status."""
        self._process.join(seconds)
        assert self.ended(), f"a hang: {self.output.read_text()}"
        return int(self._process.exitcode)

    def kill(self) -> bool:
        """Send SIGKILL, and return whether it ended the command."""
        self._process.kill()
        self._process.join()
        return self._process.exitcode == -signal.SIGKILL


def kill_when(command: Command, reached: Callable[[], bool], folder: Path, *, delay: float = 0.0) -> Kill:
    """Kill a command `delay` seconds after `reached()` first returns true, and list the files in the folder.

    A command that ends before is not killed.
    """
    until = time.monotonic() + TIMEOUT
    while not reached() and not command.ended():
        assert time.monotonic() < until, f"a hang: {command.output.read_text()}"
        time.sleep(0.001)
    command._process.join(delay)
    killed = command.kill()
    return Kill(killed, frozenset(files_below(folder)))


def files_below(folder: Path) -> list[Path]:
    """Return all files below a folder that may be changing, including hidden ones."""
    files: list[Path] = []
    for root, _, names in os.walk(folder):
        files += [Path(root) / name for name in names]
    return files


def delays(seed: int, longest: float) -> Callable[[], float]:
    """Return a function that returns a random number of seconds, at most `longest`, at each call."""
    rng = random.Random(seed)
    return lambda: rng.random() * longest


def write_and_wait(path: Path, connection: object) -> None:
    """Begin to write a file, send the name of its draft, and wait to be killed."""
    with writing(path) as draft:
        draft.write_text("half")
        connection.send(draft.name)
        time.sleep(TIMEOUT)


def write_every_row() -> None:
    """Make `evaluate` write each row into a file of its own as soon as it is made, and merge after every four files."""
    run.SECONDS_PER_FILE, run.FILES_BETWEEN_MERGES = -1.0, 4


def _run(arguments: list[str], output: Path, prepare: Callable[[], None] | None) -> None:
    from repeat_xai.cli import main

    if prepare is not None:
        prepare()
    descriptor = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(BrokenPipeError):
        main(arguments)
    sys.exit(0)
