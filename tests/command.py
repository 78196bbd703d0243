"""The command in this process, for what needs no process of its own, and the warnings that it prints about images."""

import re
import sys

import pytest

from repeat_xai.cli import main

SMALL = ["--encoder", "torchvision:squeezenet1_1", "--weights", "random", "--size", "64"]
"""An untrained encoder, whose code hardly changes when parts of a photo are hidden: the command warns of that."""
IMAGE_WARNING = re.compile(
    r"repeat-xai: (?P<image>.+): "
    r"(?P<warning>(Hiding parts of the photo changes the code by \S+\s% on average; )?"
    r"(that is very little|[Tt]he photo is nearly a single colour).*)"
)
"""A line about an image that was explained although its maps say little."""


def run_here(monkeypatch, capsys, *arguments):
    """Return the exit status, and what was written to standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["repeat-xai", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()


def without_image_warnings(errors):
    """Return standard error without the lines that warn of an image whose maps say little."""
    return "".join(line for line in errors.splitlines(keepends=True) if not IMAGE_WARNING.fullmatch(line.rstrip("\n")))


def warned_images(errors, warning="very little"):
    """Return the images of which the lines on standard error warn, in order."""
    matches = [IMAGE_WARNING.fullmatch(line) for line in errors.splitlines()]
    return [match["image"] for match in matches if match and warning in match["warning"]]
