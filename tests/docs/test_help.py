"""The examples below every `--help` run, under the rules of test_snippets.py."""

import pytest
from docs.blocks import commands
from docs.shell import run_or_check

from repeat_xai.cli.help_examples import EXAMPLES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", EXAMPLES)
@pytest.mark.usefixtures("prepared_folder")
def test_the_examples_of_a_help_text_run(command, monkeypatch, capsys, record_property):
    for example in EXAMPLES[command]:
        (words,) = commands(example)
        kind = run_or_check(words, f"--help of {command}", monkeypatch, capsys)
        record_property(f"docs: {kind}", 1)
