"""Tests of the end of `repeat-xai evaluate --executor processes`: it leaves no warning and no traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from process_tree import children
from small_work import pictures

pytestmark = pytest.mark.slow
SMALL = ["--encoder", "torchvision:squeezenet1_1=random", "--protocol", "encoder", "--size", "64", "--device", "cpu"]
EXPORTED = ["--methods", "repeat", "--masks", "300", "--repeats", "2"]
"""Enough encoder calls for each image that workers export the encoder, for which torch creates a lock."""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the command in a session of its own, on this number of pictures."""
    processes = []

    def start_on(count):
        arguments = ["--dataset", pictures(tmp_path / "some", count), *SMALL, *EXPORTED, "--maps"]
        arguments += ["--executor", "processes", "--workers", "2", "--out", str(tmp_path / "out")]
        processes.append(
            subprocess.Popen(
                [Path(sys.executable).with_name("repeat-xai"), "evaluate", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        )
        return processes[-1]

    yield start_on
    for process in processes:
        process.kill()
        process.wait()


def wait_until(reached, process):
    until = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.01)


def unexpected_lines(process):
    """Wait for the end of the command, and return what it writes to standard error apart from its own lines."""
    _, errors = process.communicate(timeout=120)
    return [line for line in errors.splitlines() if not line.startswith("repeat-xai: ")]


def imports_torch(pid):
    """Return whether a process is the server of forked processes and has begun to import torch."""
    try:
        server = b"multiprocessing.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
        return server and "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def test_workers_leave_no_semaphores_when_all_rows_are_made(start):
    process = start(2)
    assert unexpected_lines(process) == []
    assert process.returncode == 0


def test_workers_leave_no_semaphores_after_ctrl_c(start, tmp_path):
    process = start(60)
    wait_until(lambda: any((tmp_path / "out/maps.zarr").glob("*/*")), process)
    os.killpg(process.pid, signal.SIGINT)
    assert unexpected_lines(process) == []
    assert process.returncode == 130


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked from a server on Linux alone")
def test_ctrl_c_while_the_package_is_imported_for_workers_shows_no_traceback(start):
    process = start(2)
    wait_until(lambda: any(imports_torch(pid) for pid in children(process.pid)), process)
    os.killpg(process.pid, signal.SIGINT)
    assert unexpected_lines(process) == []
    assert process.returncode == 130
