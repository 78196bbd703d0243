"""Tests of methods of a user's own that are registered before the command begins, each in a process of its own.

In this process the command may have been imported already, which hides what goes wrong when it is imported later.
"""

import json
import os
import subprocess
import sys

import pytest
from command import SMALL

OWN = """
from dataclasses import dataclass

from repeat_xai.cli import main
from repeat_xai.methods.method_names import METHODS


@dataclass(frozen=True)
class Brightness:
    def importance(self, encoder, image, *, seed):
        return image.pixels.mean(0)


METHODS["brightness"] = Brightness()
main()
"""
"""A base with an importance map and nothing else, as `repeat_xai.methods.base.Base` promises to take it."""


def run_own(*arguments):
    return subprocess.run(
        [sys.executable, "-c", OWN, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"COLUMNS": "80"},
    )


@pytest.mark.parametrize("command", ["explain", "evaluate"])
def test_help_is_printed_with_a_base_without_a_title(command):
    done = run_own(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Examples:" in done.stdout


def test_a_base_with_only_an_importance_map_is_listed():
    done = run_own("list", "methods")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("brightness"))
    assert line.split() == ["brightness", "unknown", "unknown", "unknown"]


@pytest.mark.slow
def test_a_base_without_a_title_is_called_by_its_class(photo, tmp_path):
    done = run_own(
        *("explain", photo, "--out", tmp_path / "out", "--method", "brightness", "--passes", "2", "--json"), *SMALL
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["encoder_calls"] == 0
    assert "Brightness" in (tmp_path / "out/index.html").read_text(encoding="utf-8")
