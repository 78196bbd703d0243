"""Every block of README and docs works: Python and commands are run, quotations are compared with the source.

The blocks of a page are run in order, in one namespace and one folder. Some things are changed:

- budgets are cut, and encoders see 32×32 pixels (`MAX_VALUES`, `DEFAULT_VALUES`, `BUDGETS` in blocks.py); pictures are
  coarse;
- networks that would be downloaded are untrained, or a tiny one for Hugging Face, in caches where the libraries look;
- datasets have sixteen pictures each, laid out as torchvision lays them out;
- `evaluate` and `reproduce` use a tiny encoder, and the encoders that a page names are only loaded;
- a command that is on several pages is run once, and `serve`, which would not end, is only parsed.
"""

import re
from collections import Counter
from contextlib import nullcontext

import pytest
from docs.blocks import (
    PAGES,
    ROOT,
    SHELL_LANGUAGES,
    TEXT_LANGUAGES,
    blocks,
    commands,
    is_quoted_from_source,
    with_small_budget,
    without_ellipsis,
)
from docs.conftest import small_network
from docs.shell import run_or_check

pytestmark = pytest.mark.slow
MODULES_OF_READERS = {"my_module": small_network, "my_xray_module": lambda: small_network(1)}
"""Names that pages use for a module of the reader's own."""
COMMAND = re.compile(r"^(\S*\$ +)?(repeat-xai |make |import repeat_xai)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.usefixtures("prepared_folder")
def test_every_block_of_a_page_works(page, monkeypatch, capsys, record_property):
    counts: Counter[str] = Counter()
    namespace = {name: make() for name, make in MODULES_OF_READERS.items()} | {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            with nullcontext() if "main(" not in block.text else pytest.raises(SystemExit, match="0"):
                exec(compile(with_small_budget(block.text, block.place), block.place, "exec"), namespace)
            counts["blocks of Python run"] += 1
        elif block.language in SHELL_LANGUAGES:
            for words in commands(block.text):
                counts[run_or_check(without_ellipsis(words), block.place, monkeypatch, capsys)] += 1
        elif block.language == "py":
            assert is_quoted_from_source(block), f"{block.place}: these lines are not in the source any more"
            counts["quotations compared with the source"] += 1
        elif block.language in TEXT_LANGUAGES:
            assert not COMMAND.search(block.text), f"{block.place}: a command, shown as {block.language}"
            counts["blocks that are only shown"] += 1
        else:
            pytest.fail(f"{block.place}: '{block.language}' is neither Python, nor commands, nor text")
    for kind, count in counts.items():
        record_property(f"docs: {kind}", count)
