"""Every block of README and docs does what it says: code and commands run, the rest is checked or shown.

A page's blocks run in order, in one namespace and one folder. What is changed:

- budgets are cut, and encoders see 32×32 pixels (`AT_MOST`, `UNLESS_SAID`, `BUDGET` in blocks.py); pictures are coarse;
- networks that would be downloaded are untrained, a tiny one for Hugging Face, in caches where libraries look;
- datasets have sixteen pictures each, laid out as torchvision has them;
- `evaluate` and `reproduce` judge with a tiny network, and the encoders they name are loaded, no more;
- the same command on several pages is run once, and `serve`, which would not end, is parsed.
"""

import re
from collections import Counter
from contextlib import nullcontext

import pytest
from docs.blocks import PAGES, ROOT, SHELL, SHOWN, blocks, commands, quoted, shrunk, without_ellipsis
from docs.conftest import small_network
from docs.shell import obeyed

MINE = {"my_module": small_network, "my_xray_module": lambda: small_network(1)}
"""What a reader brings."""


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
            hides = re.search(r"^(\S*\$ +)?(repeat-xai |make |import repeat_xai)", block.text, re.MULTILINE)
            assert not hides, f"{block.where}: something to be run, shown as {block.language}"
            done["blocks only shown"] += 1
        else:
            pytest.fail(f"{block.where}: neither Python, nor commands, nor text to be shown, but '{block.language}'")
    for kind, count in done.items():
        record_property(f"docs: {kind}", count)
