"""Every block of README and docs does what it says: code and commands run, the rest is checked or shown.

A page's blocks run in order, in one namespace and one folder. What is changed:

- budgets are cut, and encoders see 64×64 pixels (`AT_MOST`, `UNLESS_SAID`, `BUDGET` in blocks.py); pictures are coarse;
- networks that would be downloaded are untrained, a tiny one for Hugging Face, in caches where libraries look;
- datasets have sixteen pictures each, laid out as torchvision has them;
- `evaluate` and `reproduce` judge with a tiny network, and the encoders they name are loaded, no more;
- the same command on several pages is run once, and `serve`, which would not end, is parsed.
"""

import re
import sys
import tomllib
from collections import Counter
from contextlib import nullcontext
from importlib import import_module

import pytest
from docs.blocks import PAGES, ROOT, SHELL, SHOWN, blocks, cheap, commands, named, quoted, shrunk, without_ellipsis
from docs.conftest import small_network

import repeat_xai as rx
from repeat_xai.cli import main
from repeat_xai.cli.evaluate import network_of
from repeat_xai.cli.examples import EXAMPLES

MINE = {"my_module": small_network, "my_xray_module": lambda: small_network(1)}
"""What a reader brings."""
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
DONE: set[tuple[str, ...]] = set()
"""Commands run before, on this page or another."""


@pytest.fixture
def here(prepared, tmp_path, monkeypatch):
    """A folder of one's own, with everything in it that snippets name."""
    for thing in prepared.iterdir():
        (tmp_path / thing.name).symlink_to(thing)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hf/hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("repeat_xai.gallery.DPI", 30)
    monkeypatch.setattr(
        import_module("repeat_xai.cli.demo"), "Repeat", lambda: rx.Repeat(base=rx.Relax(masks=9), repeats=2)
    )
    for module in [module for name, module in sys.modules.items() if name.startswith("repeat_xai.")]:
        if hasattr(module, "SIDE"):
            monkeypatch.setattr(module, "SIDE", 64)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.usefixtures("here")
def test_every_block_of_a_page(page, monkeypatch, capsys, record_property):
    done: Counter[str] = Counter()
    namespace = {name: made() for name, made in MINE.items()} | {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            with nullcontext() if "main(" not in block.text else pytest.raises(SystemExit, match="0"):
                exec(compile(shrunk(block.text, block.where), block.where, "exec"), namespace)
            done["blocks of Python run"] += 1
        elif block.language in SHELL:
            for words in commands(block.text):
                done[obeyed(without_ellipsis(words), block.where, monkeypatch, capsys)] += 1
        elif block.language == "py":
            assert quoted(block), f"{block.where}: these lines are not in the source any more"
            done["quotations found in the source"] += 1
        elif block.language in SHOWN:
            hides = re.search(r"^(repeat-xai |make |import repeat_xai)", block.text, re.MULTILINE)
            assert not hides, f"{block.where}: something to be run, shown as {block.language}"
            done["blocks only shown"] += 1
        else:
            pytest.fail(f"{block.where}: neither Python, nor commands, nor text to be shown, but '{block.language}'")
    for kind, count in done.items():
        record_property(f"docs: {kind}", count)


@pytest.mark.parametrize("command", EXAMPLES)
@pytest.mark.usefixtures("here")
def test_the_examples_of_every_help(command, monkeypatch, capsys, record_property):
    for example in EXAMPLES[command]:
        (words,) = commands(example)
        record_property(f"docs: {obeyed(words, f'--help of {command}', monkeypatch, capsys)}", 1)


def obeyed(words: list[str], where: str, monkeypatch, capsys) -> str:
    """Do what a line of a shell asks, or check that it could be done; which of the two it was."""
    program, *rest = words
    if program == "repeat-xai":
        if tuple(rest) in DONE:
            return "commands run before"
        DONE.add(tuple(rest))
        if rest[0] in ("evaluate", "reproduce"):
            for encoder in named(rest):
                network_of(encoder, "encoder").load("cpu")
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
