"""The tutorial, run as it stands: its code prints the numbers that stand below it, and its notebook is the same."""

import importlib.util
import json
import re

import pytest
from docs.blocks import ROOT, TUTORIAL, blocks

specification = importlib.util.spec_from_file_location("tutorial", ROOT / "tools/tutorial.py")
tool = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tool)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def test_the_code_prints_what_is_printed_below_it(record_property):
    found, _ = tool.cells(TUTORIAL.read_text(encoding="utf-8"))
    assert len(found) == sum(block.language == "python" for block in blocks(TUTORIAL))
    namespace, figures = {}, 0
    for cell in found:
        said, figure = tool.ran(cell.code, namespace)
        figures += figure is not None
        assert NUMBER.sub("#", said) == NUMBER.sub("#", cell.said)
        assert numbers(said) == pytest.approx(numbers(cell.said), abs=0.05)
    assert figures == 1
    record_property("docs: cells of the tutorial run", len(found))


def test_the_notebook_is_the_page():
    path = TUTORIAL.with_suffix(".ipynb")
    assert path.stat().st_size < 1_500_000
    notebook = json.loads(path.read_text(encoding="utf-8"))
    found, end = tool.cells(TUTORIAL.read_text(encoding="utf-8"))
    words = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert words == [*(cell.words for cell in found), end]
    assert [cell["source"] for cell in code] == [cell.code.rstrip() for cell in found]
    said = ["".join(out["text"] for out in cell["outputs"] if out["output_type"] == "stream") for cell in code]
    assert said == [cell.said for cell in found]
