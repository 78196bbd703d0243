"""The tutorial is run at its own budget: its code prints the numbers on the page, and its notebook is the same."""

import importlib.util
import json
import re

import pytest
from docs.blocks import ROOT, TUTORIAL, blocks

pytestmark = pytest.mark.slow
specification = importlib.util.spec_from_file_location("tutorial", ROOT / "tools/tutorial.py")
tool = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tool)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def test_the_code_prints_the_output_on_the_page(record_property):
    cells, _ = tool.cells(TUTORIAL.read_text(encoding="utf-8"))
    assert len(cells) == sum(block.language == "python" for block in blocks(TUTORIAL))
    namespace, figures = {}, 0
    for cell in cells:
        output, figure = tool.run(cell.code, namespace)
        figures += figure is not None
        assert NUMBER.sub("#", output) == NUMBER.sub("#", cell.output)
        assert numbers(output) == pytest.approx(numbers(cell.output), abs=0.05)
    assert figures == 1
    record_property("docs: cells of the tutorial run", len(cells))


def test_the_notebook_is_the_page():
    path = TUTORIAL.with_suffix(".ipynb")
    assert path.stat().st_size < 1_500_000
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells, end = tool.cells(TUTORIAL.read_text(encoding="utf-8"))
    texts = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert texts == [*(cell.text for cell in cells), end]
    assert [cell["source"] for cell in code] == [cell.code.rstrip() for cell in cells]
    outputs = ["".join(out["text"] for out in cell["outputs"] if out["output_type"] == "stream") for cell in code]
    assert outputs == [cell.output for cell in cells]
