"""Run a line of a shell, or check it where it cannot be run."""

import re
import sys
import tomllib

import pytest
from docs.blocks import ROOT, cheap_command, encoders_of

from repeat_xai.cli import main
from repeat_xai.experiments.settings import EncoderSpec

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
COMMANDS_RUN: set[tuple[str, ...]] = set()
"""Commands that were run before, on the same page or another."""


def run_or_check(words: list[str], place: str, monkeypatch, capsys) -> str:
    """Run a line of a shell, or check that it could be run, and return which of the two was done."""
    program, *rest = words
    if program == "repeat-xai":
        if tuple(rest) in COMMANDS_RUN:
            return "commands run before"
        COMMANDS_RUN.add(tuple(rest))
        if rest[0] in ("evaluate", "reproduce"):
            for encoder in encoders_of(rest):
                EncoderSpec.of(encoder).load("cpu")
        arguments = [*rest, "--help"] if rest[0] == "serve" else cheap_command(rest)
        status, output = run_command(arguments, monkeypatch, capsys)
        assert status == 0, f"{place}: {' '.join(words)}: {output.err}"
        return "commands run"
    if program == "make":
        assert set(rest) <= TARGETS, f"{place}: make {rest}"
        return "targets of make checked"
    if program == "pip":
        name, _, extras = rest[1].rstrip("]").partition("[")
        assert (rest[0], name) == ("install", "repeat-xai"), f"{place}: {' '.join(words)}"
        assert set(filter(None, extras.split(","))) <= set(EXTRAS), f"{place}: {rest[1]}"
        return "packages of pip checked"
    return pytest.fail(f"{place}: this test does not know how to check '{program}'")


def run_command(arguments: list[str], monkeypatch, capsys):
    """Run the command in this process, and return its exit status and its output."""
    monkeypatch.setattr(sys, "argv", ["repeat-xai", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0, capsys.readouterr()
