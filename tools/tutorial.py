"""Run the code of docs/tutorial.md, and write its output into the page and into a notebook.

    python tools/tutorial.py

A block of Python may be followed by a block of text, which is its output, or by a picture, which is the figure that it
ends with. Both are written again. The notebook has the same cells with the same outputs.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "tutorial.md"
CELL = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n|\n!\[[^\n]*\n)?", re.DOTALL)
DPI = 80


class Cell(NamedTuple):
    """A block of code, its output according to the page, and the text before it."""

    text: str
    code: str
    output: str


def cells(page: str) -> tuple[list[Cell], str]:
    """Return the cells of the page, and the text after the last one."""
    result, end = [], 0
    for cell in CELL.finditer(page):
        result.append(Cell(page[end : cell.start()].strip(), cell["code"], cell["output"] or ""))
        end = cell.end()
    return result, page[end:].strip()


def run(code: str, namespace: dict[str, Any]) -> tuple[str, Figure | None]:
    """Run code, and return what it prints and the figure that it ends with."""
    *body, last = ast.parse(code).body
    printed, result = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), str(PAGE), "exec"), namespace)
        if isinstance(last, ast.Expr):
            result = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), namespace)
        else:
            exec(compile(ast.Module([last], []), str(PAGE), "exec"), namespace)
    return printed.getvalue(), result if isinstance(result, Figure) else None


def updated(old_page: str) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """Return the page with the output of its code, the notebook, and the pictures by name."""
    namespace: dict[str, Any] = {}
    page, notebook, pictures = [], [], {}
    old_cells, end = cells(old_page)
    for number, cell in enumerate(old_cells, start=1):
        output, figure = run(cell.code, namespace)
        outputs: list[dict[str, Any]] = []
        page += [cell.text, f"```python\n{cell.code}```"]
        if output:
            page.append(f"```text\n{output}```")
            outputs.append({"output_type": "stream", "name": "stdout", "text": output})
        if figure is not None:
            png, name = io.BytesIO(), f"tutorial_{number}.png"
            figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
            pictures[name] = png.getvalue()
            page.append(f"![What the code above draws](figures/{name})")
            data = {"image/png": base64.b64encode(pictures[name]).decode()}
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        source = {"cell_type": "code", "execution_count": number, "outputs": outputs, "source": cell.code.rstrip()}
        notebook += [{"cell_type": "markdown", "source": cell.text}, source]
    notebook.append({"cell_type": "markdown", "source": end})
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    numbered = [{"id": f"cell-{number}", "metadata": {}} | cell for number, cell in enumerate(notebook)]
    whole = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return "\n\n".join((*page, end)) + "\n", whole, pictures


if __name__ == "__main__":
    page, notebook, pictures = updated(PAGE.read_text(encoding="utf-8"))
    for name, picture in pictures.items():
        (DOCS / "figures" / name).write_bytes(picture)
    PAGE.with_suffix(".ipynb").write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")
