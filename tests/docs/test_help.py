"""The examples below every `--help` do what they say, under the rules of test_snippets.py."""

import pytest
from docs.blocks import commands
from docs.shell import obeyed

from repeat_xai.cli.help_examples import EXAMPLES


@pytest.mark.parametrize("command", EXAMPLES)
@pytest.mark.usefixtures("here")
def test_the_examples_of_every_help(command, monkeypatch, capsys, record_property):
    for example in EXAMPLES[command]:
        (words,) = commands(example)
        record_property(f"docs: {obeyed(words, f'--help of {command}', monkeypatch, capsys)}", 1)
