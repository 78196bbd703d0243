"""Tests, files of the source, options and pages that the documentation names exist, and its lines are short."""

import ast
import re

import pytest
import yaml
from docs.blocks import PAGES, ROOT, TUTORIAL

from repeat_xai.cli.commands import COMMANDS, load_command

TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
SOURCE = re.compile(
    r"`((?:cli|app|output|experiments|metrics|methods|engine|encoders|data|types|files)/[\w/]+\.py)(?::(\w+)(?:\.\w+)?)?`"
)
FOREIGN_OPTIONS = {
    "--head",
    "--port",
    "--address",
    "--version",
    "--install-completion",
    "--show-completion",
    "--help",
    "--figures",
}
"""Options of Ray, of benchmarks, and of the command as a whole."""


def functions_of(path):
    """Return the names of all functions and classes at the top of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_equation_names_tests_that_exist():
    text = (ROOT / "docs/equations.md").read_text(encoding="utf-8")
    for path, name in TEST.findall(text):
        assert name in functions_of(ROOT / path), f"{path} has no test {name}"
    equations = re.split(r"^```text\n", text, flags=re.MULTILINE)[1:]
    untested = [part.partition("\n")[0] for part in equations if not TEST.search(part)]
    assert not untested, f"equations without a test: {untested}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_of_the_source_that_a_page_names_exist(page):
    for path, name in SOURCE.findall(page.read_text(encoding="utf-8")):
        file = ROOT / "src/repeat_xai" / path
        assert file.exists(), f"{page.name}: there is no {path}"
        assert not name or name in functions_of(file), f"{page.name}: {path} has no {name}"


def options_of(command):
    """Return the options of a command, both forms of a switch included."""
    parameters = load_command(command).params
    return {name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)}


def test_options_that_pages_name_exist():
    known = FOREIGN_OPTIONS.union(*map(options_of, COMMANDS))
    for page in (*PAGES, TUTORIAL):
        unknown = set(OPTION.findall(page.read_text(encoding="utf-8"))) - known
        assert not unknown, f"{page.name}: {', '.join(sorted(unknown))}"


def test_every_option_of_explain_is_described():
    text = (ROOT / "docs/command.md").read_text(encoding="utf-8")
    options = {name for name in options_of("explain") if name.startswith("--")} - {"--help"}
    assert not options - set(OPTION.findall(text))


def test_every_page_is_in_the_menu():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = set(re.findall(r"[\w/-]+\.md", str(menu)))
    assert pages == {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}


@pytest.mark.parametrize("page", [*PAGES, TUTORIAL, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_lines_have_at_most_120_characters(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    long = [
        number for number, line in enumerate(lines, start=1) if len(line) > 120 and not line.strip().startswith("|")
    ]
    assert not long, f"{page.name}: lines {long}"
