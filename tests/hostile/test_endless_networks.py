"""Tests that an ONNX network that never ends is ended by a signal, with its command or with the app."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import PIL.Image
import pytest
from apps import FORM, PAGE, browser, call
from hostile.endless_networks import looping, stubborn
from serving import SMALL, serving, until
from skimage import data

LONG_PART = pytest.mark.hostile
pytestmark = pytest.mark.slow
SECONDS = 15.0
"""Time in which a signal must have ended everything; a call that cannot be ended is given three seconds of it."""
STARTED = 3.0
"""Seconds of processor time, after those of loading, by which a network certainly runs."""


def processor_seconds(pid):
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "cat.png"
    PIL.Image.fromarray(data.chelsea()[::4, ::4]).save(path)
    return path


@contextmanager
def explaining(network, photo, folder):
    """Run `repeat-xai explain` with a network until the block ends, and yield the process once the network runs."""
    arguments = ("explain", photo, "--encoder", f"onnx:{network}", "--size", 32, "--out", folder / "out")
    with subprocess.Popen(
        [Path(sys.executable).with_name("repeat-xai"), *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert until(lambda: "onnxruntime" in Path(f"/proc/{process.pid}/maps").read_text(), seconds=60)
            loaded = processor_seconds(process.pid)
            assert until(lambda: processor_seconds(process.pid) > loaded + STARTED, seconds=60)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("network", "sent"),
    [
        (looping, signal.SIGTERM),
        pytest.param(looping, signal.SIGINT, marks=LONG_PART),
        pytest.param(stubborn, signal.SIGTERM, marks=LONG_PART),
        pytest.param(stubborn, signal.SIGINT, marks=LONG_PART),
    ],
)
def test_a_signal_ends_the_command(network, sent, photo, tmp_path):
    with explaining(network(tmp_path), photo, tmp_path) as process:
        process.send_signal(sent)
        assert process.wait(SECONDS) == 130
        assert process.stderr.read() == "repeat-xai: interrupted; run the same command again to go on\n"


class ShownJob:
    """A job of the app, and everything that its page has been sent so far."""

    def __init__(self, client, form, page):
        self.client, self.page, self.shown = client, page, ""
        assert call(client, 1, [], event={"number": 0}, session=page).status_code == 200
        assert call(client, 3, form, session=page).status_code == 200
        body = {"data": [], "event_data": None, "fn_index": 4, "session_hash": page, "trigger_id": 1}
        assert client.post("/gradio_api/queue/join", json=body).status_code == 200
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with (
            suppress(httpx.HTTPError),  # the server ends
            self.client.stream("GET", "/gradio_api/queue/data", params={"session_hash": self.page}) as stream,
        ):
            for text in stream.iter_text():
                self.shown += text

    def shows(self, text, seconds=60):
        """Return whether the page is sent this text in time."""
        return until(lambda: text in self.shown, seconds)


def form_of(network):
    return (f"onnx:{network}", "relax", "", "", "fast", 20, 2, 0, 2, 32, 0)


def test_a_network_that_never_ends_delays_no_other_user_of_the_app_and_ends_on_cancel(tmp_path):
    with serving(tmp_path, *SMALL) as app, closing(browser(app.address)) as one, closing(browser(app.address)) as two:
        endless = ShownJob(one, form_of(looping(tmp_path)), PAGE)
        assert endless.shows("Preparing"), endless.shown
        other = ShownJob(two, FORM, "page-of-another")
        assert other.shows("Done"), other.shown
        busy = app.seconds()
        time.sleep(2)
        assert app.seconds() - busy > 0.2
        assert call(one, 5, []).status_code == 200
        time.sleep(2)
        idle = app.seconds()
        time.sleep(2)
        assert app.seconds() - idle < 0.2


@pytest.mark.parametrize("network", [pytest.param(looping, marks=LONG_PART), stubborn])
def test_sigterm_ends_the_app_while_a_network_runs(network, tmp_path):
    with serving(tmp_path, *SMALL) as app, closing(browser(app.address)) as client:
        job = ShownJob(client, form_of(network(tmp_path)), PAGE)
        assert job.shows("Preparing"), job.shown
        busy = app.seconds()
        assert until(lambda: app.seconds() > busy + STARTED, seconds=60)
        assert not re.search(r'data-end=\\?"\w', job.shown), job.shown
        # Leaving the block sends SIGTERM.
