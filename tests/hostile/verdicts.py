"""Functions that run one hostile input and return a verdict.

Every input of the corpus is a `Case`. The verdict is `right` if the input was accepted and its result is what it should
be, and `refused` if it was answered with one line that a user can act on. Everything else is a fault of the package.
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
"""Time after which an input that was not answered counts as a hang."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One hostile input and the answer it should get."""

    name: str
    make: Callable[[Path], Any]
    """Function that writes the input into an empty folder, and returns what is handed to the package."""
    expected: Literal["right", "refused"] = "refused"
    message: str = ""
    """A regular expression that the refusal must match somewhere."""

    def __str__(self) -> str:
        return self.name


class Verdict(NamedTuple):
    """What became of one input, and the text of the answer."""

    kind: Kind
    text: str = ""


class Hang(BaseException):
    """The time is over. This is not an Exception, so that no `except Exception` catches it."""


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


def verdict_of_call(action: Callable[[], object], *, seconds: float = SECONDS) -> Verdict:
    """Call a function of the package in this process. The caller checks a result that is `right`."""
    try:
        with time_limit(seconds):
            action()
    except Hang:
        return Verdict("hang")
    except RepeatError as error:
        one_line = len(str(error).splitlines()) == 1
        return Verdict("refused" if one_line else "traceback", str(error))
    except BaseException:  # SystemExit and KeyboardInterrupt count as faults too
        return Verdict("traceback", traceback.format_exc())
    return Verdict("right")


def verdict_of_command(*arguments: object, seconds: float = 120.0, lines: int = 1) -> Verdict:
    """Run `repeat-xai` in a process of its own. Status 0 is right; 1 or 2 with at most `lines` lines is a refusal."""
    command = [sys.executable, "-m", "repeat_xai", *map(str, arguments)]
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict("hang")
    errors = completed.stderr.strip()
    if completed.returncode == 0:
        return Verdict("right", completed.stdout + completed.stderr)
    refused = completed.returncode in (1, 2) and 0 < len(errors.splitlines()) <= lines and "Traceback" not in errors
    return Verdict("refused" if refused else "traceback", f"status {completed.returncode}: {errors}")


def drafts(folder: Path) -> list[Path]:
    """Return the hidden files below a folder: files that were begun and neither finished nor removed."""
    return [path for path in folder.rglob(".*") if path.is_file()]
