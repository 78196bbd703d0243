"""Run one hostile input and say what became of it.

Every input of the corpus is a `Case`. A case is `right` when it was accepted and its result is what it should be,
`refused` when it was answered with one line that a user can act on. Everything else is a fault of the package.
"""

import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from repeat_xai.errors import RepeatError

Kind = Literal["right", "refused", "traceback", "hang", "half file"]
KINDS: tuple[Kind, ...] = ("right", "refused", "traceback", "hang", "half file")
SECONDS = 30.0
"""After this time an input that was not answered counts as a hang."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One hostile input and the answer it should get."""

    name: str
    make: Callable[[Path], Any]
    """Writes the input into an empty folder, and returns what is handed to the package."""
    expected: Literal["right", "refused"] = "refused"
    says: str = ""
    """A regular expression that the refusal must match somewhere."""

    def __str__(self) -> str:
        return self.name


class Verdict(NamedTuple):
    """What became of one input, and what was said about it."""

    kind: Kind
    said: str = ""


class Hang(BaseException):
    """The time is over. This is no Exception, so that no `except Exception` swallows it."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Raise `Hang` in the main thread when the block takes longer than this."""

    def end(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def called(action: Callable[[], object], *, seconds: float = SECONDS) -> Verdict:
    """Call a function of the package in this process. The caller checks a result that is `right` himself."""
    try:
        with time_limit(seconds):
            action()
    except Hang:
        return Verdict("hang")
    except RepeatError as error:
        one_line = len(str(error).splitlines()) == 1
        return Verdict("refused" if one_line else "traceback", str(error))
    except BaseException:  # SystemExit and KeyboardInterrupt are faults here too
        return Verdict("traceback", traceback.format_exc())
    return Verdict("right")


def commanded(*arguments: object, seconds: float = 120.0, lines: int = 1) -> Verdict:
    """Run `repeat-xai` in a process of its own: status 0 is right, 1 or 2 with that many lines at most is a refusal."""
    command = [sys.executable, "-m", "repeat_xai", *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Verdict("hang")
    said = done.stderr.strip()
    if done.returncode == 0:
        return Verdict("right", done.stdout + done.stderr)
    refused = done.returncode in (1, 2) and 0 < len(said.splitlines()) <= lines and "Traceback" not in said
    return Verdict("refused" if refused else "traceback", f"status {done.returncode}: {said}")


def drafts(folder: Path) -> list[Path]:
    """Hidden files below a folder: files that were begun and neither finished nor taken away."""
    return [path for path in folder.rglob(".*") if path.is_file()]
