"""The app as a user starts it, in a process of its own that records its calls to other machines; and its page."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

LAUNCH = """
import sys
calls = open(sys.argv.pop(1), "a", buffering=1)
THIS_MACHINE = ("127.0.0.1", "localhost", "::1", "", None)

def record(event, details):
    address = details[1] if event == "socket.connect" else details if event == "socket.getaddrinfo" else None
    if isinstance(address, tuple) and address[0] not in THIS_MACHINE:
        calls.write(f"{event} {address}\\n")

sys.addaudithook(record)
from repeat_xai.cli import main
main()
"""
END_SECONDS = 15.0
"""Time in which SIGTERM must have ended the app, whatever its jobs are doing."""
SMALL = ("--encoder", "torchvision:squeezenet1_1=random", "--size", "64", "--device", "cpu")


class App:
    """A running app."""

    def __init__(self, address: str, process: subprocess.Popen, calls: Path, home: Path) -> None:
        self.address, self.process, self.calls, self.home = address, process, calls, home

    def seconds(self) -> float:
        """Return the processor time that the app has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def files(self) -> list[Path]:
        """Return all files that the app keeps of its users. Folders may vanish meanwhile."""
        return [Path(folder) / name for folder, _, names in os.walk(self.home) for name in names]


@contextmanager
def serving(folder: Path, *options: str):
    """Serve the app on a free port until the block ends."""
    home, calls = folder / "tmp", folder / "calls"
    home.mkdir()
    arguments = [sys.executable, "-c", LAUNCH, str(calls), "serve", *options, "--port", "0", "--no-browser"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "TMPDIR": str(home)}
        ) as process,
    ):
        try:
            line = process.stdout.readline()
            address = re.search(r"http://\S+", line)
            assert address, f"{line}{(folder / 'log').read_text()}"
            yield App(address[0], process, calls, home)
            assert process.poll() is None
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
    assert process.returncode == 0, (process.returncode, (folder / "log").read_text())
    assert not (errors := (folder / "log").read_text()), errors
    assert not (left := list(home.glob("repeat-xai-*"))), left


def until(condition, seconds: float = 10.0) -> bool:
    """Tell whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def give(page, path):
    page.set_input_files("#upload input[type=file]", path)


def fill(page, **numbers):
    if not page.locator("#seed input").is_visible():
        page.locator("#settings button").first.click()
    fields = {page.locator(f"#{name} input"): str(value) for name, value in numbers.items()}
    while changed := {field: value for field, value in fields.items() if field.input_value() != value}:
        for field, value in changed.items():
            field.fill(value)
        page.wait_for_timeout(400)  # into fields that have just appeared Gradio puts the default once more


def choose(page, name, label):
    """Choose by typing, as quickly as Gradio can follow. A choice that was not taken shows the one before."""
    field = page.locator(f"#{name} input")
    while True:
        field.fill(label)
        page.wait_for_timeout(200)
        field.press("Enter")
        field.blur()
        page.wait_for_timeout(200)
        if field.input_value() == label:
            return


def explain(page):
    """Press the button, wherever fields that come and go move it. The status before is not taken for an answer."""
    page.locator("#status .status").evaluate("status => (status.dataset.end = 'before')")
    page.locator("#explain").press("Enter")


def done(page, end="done"):
    page.wait_for_selector(f"#status .status[data-end={end}]")
    return page.locator("#status .status").inner_text()


def kept(page, name):
    """Return the path of a file that was downloaded from the page."""
    with page.expect_download() as download:
        page.get_by_role("link", name=name, exact=True).click()
    assert download.value.suggested_filename == name
    return download.value.path()
