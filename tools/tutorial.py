"""Run docs/tutorial.md: what its code prints stands below it, its figures beside it, and all of it in a notebook.

    python tools/tutorial.py

A block of Python may be followed by a block of text, what it printed, or by a picture, the figure it ends with: both
are written anew. The notebook has the same cells with the same outputs.
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
CELL = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<said>.*?)```\n|\n!\[[^\n]*\n)?", re.DOTALL)
DPI = 80


class Cell(NamedTuple):
    """Code, what it is meant to print, and the words before it."""

    words: str
    code: str
    said: str


def cells(text: str) -> tuple[list[Cell], str]:
    """Those of the page, and the words at its end."""
    found, at = [], 0
    for cell in CELL.finditer(text):
        found.append(Cell(text[at : cell.start()].strip(), cell["code"], cell["said"] or ""))
        at = cell.end()
    return found, text[at:].strip()


def ran(code: str, namespace: dict[str, Any]) -> tuple[str, Figure | None]:
    """What code prints, and the figure it ends with."""
    *body, last = ast.parse(code).body
    printed, result = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), str(PAGE), "exec"), namespace)
        if isinstance(last, ast.Expr):
            result = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), namespace)
        else:
            exec(compile(ast.Module([last], []), str(PAGE), "exec"), namespace)
    return printed.getvalue(), result if isinstance(result, Figure) else None


def made(text: str) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """The page with what its code gives, the notebook, and the pictures by name."""
    namespace: dict[str, Any] = {}
    page, notebook, pictures = [], [], {}
    found, end = cells(text)
    for number, cell in enumerate(found, start=1):
        said, figure = ran(cell.code, namespace)
        outputs: list[dict[str, Any]] = []
        page += [cell.words, f"```python\n{cell.code}```"]
        if said:
            page.append(f"```text\n{said}```")
            outputs.append({"output_type": "stream", "name": "stdout", "text": said})
        if figure is not None:
            png, name = io.BytesIO(), f"tutorial_{number}.png"
            figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
            pictures[name] = png.getvalue()
            page.append(f"![What the code above draws](figures/{name})")
            data = {"image/png": base64.b64encode(pictures[name]).decode()}
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        source = {"cell_type": "code", "execution_count": number, "outputs": outputs, "source": cell.code.rstrip()}
        notebook += [{"cell_type": "markdown", "source": cell.words}, source]
    notebook.append({"cell_type": "markdown", "source": end})
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    numbered = [{"id": f"cell-{number}", "metadata": {}} | cell for number, cell in enumerate(notebook)]
    whole = {"cells": numbered, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return "\n\n".join((*page, end)) + "\n", whole, pictures


if __name__ == "__main__":
    page, notebook, pictures = made(PAGE.read_text(encoding="utf-8"))
    for name, picture in pictures.items():
        (DOCS / "figures" / name).write_bytes(picture)
    PAGE.with_suffix(".ipynb").write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")
