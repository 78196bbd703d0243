"""A line of a shell done, or checked where it cannot be."""

import re
import sys
import tomllib

import pytest
from docs.blocks import ROOT, cheap, named

from repeat_xai.cli import main
from repeat_xai.experiments.settings import EncoderSpec

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
DONE: set[tuple[str, ...]] = set()
"""Commands run before, on this page or another."""


def obeyed(words: list[str], where: str, monkeypatch, capsys) -> str:
    """Do what a line of a shell asks, or check that it could be done; which of the two it was."""
    program, *rest = words
    if program == "repeat-xai":
        if tuple(rest) in DONE:
            return "commands run before"
        DONE.add(tuple(rest))
        if rest[0] in ("evaluate", "reproduce"):
            for encoder in named(rest):
                EncoderSpec.of(encoder).load("cpu")
        status, said = ran([*rest, "--help"] if rest[0] == "serve" else cheap(rest), monkeypatch, capsys)
        assert status == 0, f"{where}: {' '.join(words)}: {said.err}"
        return "commands run"
    if program == "make":
        assert set(rest) <= TARGETS, f"{where}: make {rest}"
        return "targets of make found"
    if program == "pip":
        name, _, extras = rest[1].rstrip("]").partition("[")
        assert (rest[0], name) == ("install", "repeat-xai"), f"{where}: {' '.join(words)}"
        assert set(filter(None, extras.split(","))) <= set(EXTRAS), f"{where}: {rest[1]}"
        return "packages of pip found"
    return pytest.fail(f"{where}: nothing says how '{program}' is to be checked")


def ran(arguments: list[str], monkeypatch, capsys):
    """The command in this process: its exit status, and what it said."""
    monkeypatch.setattr(sys, "argv", ["repeat-xai", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0, capsys.readouterr()
