"""Tests that SIGTERM ends `evaluate` at any moment with one line, status 130, all rows written and no process left."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hostile.damages import deleted
from hostile.kills import files_below
from hostile.verdicts import Case, Verdict
from process_tree import children, ended
from small_work import network, pictures

from repeat_xai.experiments.store.row_store import RowStore

LONG_PART = pytest.mark.hostile
pytestmark = pytest.mark.slow
TIMEOUT = 120.0
LINES = {
    "repeat-xai: interrupted\n",
    "repeat-xai: interrupted; run the same command again to go on\n",
}
COMMAND = str(Path(sys.executable).with_name("repeat-xai"))
"""The installed command. `python -m` ends by SIGINT in place of status 130 if the interrupt came in `exec` of a string,
as when a module that defines a dataclass is imported."""
SLOW = ("--methods", "relax", "--masks", 16000, "--protocol", "encoder", "--device", "cpu")
"""Options with which an image takes some tenths of a second, so that rows are written long before the work ends."""


class Running:
    """`repeat-xai evaluate` in a session of its own, to which signals are sent."""

    def __init__(self, folder: Path, executor: str) -> None:
        self.out, self.errors = folder / "out", folder / "errors"
        encoder, photos = network(folder).name, pictures(folder / "photos", 60)
        workers = () if executor == "local" else ("--executor", executor, "--workers", 1)
        arguments = ("evaluate", "--dataset", photos, "--encoder", encoder, *SLOW, *workers, "--out", self.out)
        with self.errors.open("w") as errors:
            self._process = subprocess.Popen(
                [COMMAND, *map(str, arguments)],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL),
            )
        self.started: set[int] = set()

    def wait_until(self, reached) -> None:
        """Wait until `reached(self)` is true, noting every process that the command starts."""
        until = time.monotonic() + TIMEOUT
        while not reached(self):
            assert self._process.poll() is None, self.errors.read_text()
            assert time.monotonic() < until, "a hang"
            self.started |= children(self._process.pid)
            time.sleep(0.02)
        self.started |= children(self._process.pid)

    def end(self, *, times: int = 1) -> Verdict:
        """Send SIGTERM `times` times, and return the verdict on the end of the command and of its processes."""
        for _ in range(times):
            self._process.send_signal(signal.SIGTERM)
            self.started |= children(self._process.pid)
            time.sleep(0.1 * (times > 1))
        try:
            while self._process.poll() is None:
                self.started |= children(self._process.pid)
                self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            return self._waited()
        return self._verdict()

    def _waited(self) -> Verdict:
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return Verdict("hang", self.errors.read_text())
        return self._verdict()

    def _verdict(self) -> Verdict:
        errors = self.errors.read_text().splitlines(keepends=True)
        lines = [line for line in errors if not line.endswith("rows to make\n")]
        if self._process.returncode != 130 or len(lines) != 1 or lines[0] not in LINES:
            return Verdict("traceback", f"status {self._process.returncode}: {''.join(errors)}")
        left = [pid for pid in self.started if not ended({pid}, seconds=20.0)]
        return Verdict("half file", f"processes are left: {left}") if left else Verdict("right", lines[0])

    def names(self) -> str:
        """Return the commands of all running processes that it has started."""
        text = b""
        for pid in children(self._process.pid):
            with suppress(OSError):
                text += Path(f"/proc/{pid}/cmdline").read_bytes()
        return text.decode(errors="replace")

    def maps(self, word: str) -> bool:
        """Return whether the command has loaded a library whose path contains this word."""
        with suppress(OSError):
            return word in Path(f"/proc/{self._process.pid}/maps").read_text()
        return False

    @property
    def rows(self) -> list:
        return [path for path in files_below(self.out / "rows") if path.suffix == ".parquet"]


def loading(running):
    return running.maps("libtorch")


def counted(running):
    """Return whether everything is loaded and the work begins."""
    return "rows to make" in running.errors.read_text()


def cluster_begun(running):
    return "gcs_server" in running.names()


def nodes_begun(running):
    return "raylet" in running.names()


def actors_begun(running):
    return "ray::" in running.names().replace("ray::IDLE", "").replace("ray::Dash", "").replace("ray::Runtime", "")


def written(running):
    return bool(running.rows)


MOMENTS = {
    "local": {"loading": loading, "at the first rows": counted, "while rows are written": written},
    "processes": {"loading": loading, "while processes start": counted, "while rows are written": written},
    "ray": {
        "before Ray starts": counted,
        "while its cluster starts": cluster_begun,
        "while its node starts": nodes_begun,
        "while actors load": actors_begun,
        "while rows are written": written,
    },
}


def cluster_mark(executor):
    """Return the marks of a test that uses this executor."""
    return [pytest.mark.cluster] if executor == "ray" else []


QUICK = {("local", "at the first rows"), ("processes", "while processes start"), ("ray", "while actors load")}


@pytest.mark.parametrize(
    ("executor", "moment"),
    [
        pytest.param(
            executor, moment, marks=[*cluster_mark(executor), *([] if (executor, moment) in QUICK else [LONG_PART])]
        )
        for executor, moments in MOMENTS.items()
        for moment in moments
    ],
)
def test_sigterm_gives_one_line_and_leaves_no_process(executor, moment, judge, tmp_path):
    running = Running(tmp_path, executor)
    running.wait_until(MOMENTS[executor][moment])
    verdict = running.end()
    judge("signals", verdict, Case(name=moment, make=deleted, expected="right"))
    if moment == "while rows are written":
        assert RowStore(running.out / "rows").score_names()


@LONG_PART
@pytest.mark.cluster
@pytest.mark.parametrize("wait", [0.3, 0.8, 1.2, 1.6, 2.2, 4.0])
def test_sigterm_while_ray_starts_gives_one_line(wait, judge, tmp_path):
    """The waiting times meet Ray while it loads its library, starts a node, connects, and starts and loads actors."""
    running = Running(tmp_path, "ray")
    running.wait_until(nodes_begun)
    time.sleep(wait)
    judge("signals", running.end(), Case(name=str(wait), make=deleted, expected="right"))


@LONG_PART
@pytest.mark.parametrize("executor", [pytest.param(name, marks=cluster_mark(name)) for name in MOMENTS])
def test_repeated_sigterms_are_ignored_while_the_run_ends(executor, judge, tmp_path):
    """`timeout` sends the signal twice; the rows that wait to be written are written nevertheless."""
    running = Running(tmp_path, executor)
    running.wait_until(written)
    time.sleep(1.0)
    judge("signals", running.end(times=4), Case(name=executor, make=deleted, expected="right"))
    assert RowStore(running.out / "rows").score_names()


@LONG_PART
@pytest.mark.cluster
def test_sigterm_while_ray_shuts_down_gives_one_line(judge, tmp_path):
    running = Running(tmp_path, "ray")
    running.wait_until(written)
    running._process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    judge("signals", running.end(), Case(name="shutting down", make=deleted, expected="right"))
