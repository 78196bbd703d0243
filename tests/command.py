"""The command in this process, for what needs no process of its own."""

import sys

import pytest

from repeat_xai.cli import main

SMALL = ["--encoder", "torchvision:squeezenet1_1", "--weights", "random", "--size", "64"]


def run_here(monkeypatch, capsys, *arguments):
    """Its exit status, and what it said."""
    monkeypatch.setattr(sys, "argv", ["repeat-xai", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()
