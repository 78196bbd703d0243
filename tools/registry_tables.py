"""Tables of everything that has a name, made from the registries of the package while the documentation is built.

A line `<!-- table: NAME -->` in a page of the documentation becomes the table of this name. MkDocs calls
`on_page_markdown` for every page, since `mkdocs.yml` names this file as a hook. Adding a method, a metric or anything
else to its registry therefore changes no page.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.experiments.executors.executor_names import EXECUTORS
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import TABLES as PAPER_TABLES
from repeat_xai.methods.method_names import METHODS
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.metrics import KINDS, METRICS

Row = tuple[str, ...]
PLACE = re.compile(r"^<!-- table: (?P<name>[a-z ]+) -->$", re.MULTILINE)


def methods() -> Iterator[Row]:
    """Yield every method: its name, its class, what it needs, and what it costs for an image of 224×224 pixels."""
    yield "name", "in Python", "stochastic", "gradients", "encoder calls", "source"
    for name, method in METHODS.items():
        facts = ("yes" if fact else "no" for fact in (method.stochastic, method.gradients))
        yield _code(name), _code(call(method)), *facts, f"{method.calls:,}", method.citation


def metrics(kind: type[Any]) -> Iterator[Row]:
    """Yield every metric of a kind."""
    yield "name", "measures", "needs", "better", "source"
    for metric in METRICS.values():
        if isinstance(metric, kind):
            source = "; ".join(filter(None, (metric.citation, metric.section and f"the paper's {metric.section}")))
            yield _code(metric.name), metric.description, metric.needs, metric.better, source


def datasets() -> Iterator[Row]:
    """Yield every dataset."""
    yield "name", "images"
    for name, dataset in DATASETS.items():
        yield _code(name), dataset.description


def thresholds() -> Iterator[Row]:
    """Yield every threshold."""
    yield "name", "rule"
    for name, function in THRESHOLDS.items():
        yield _code(name), summary(function)


def kernels() -> Iterator[Row]:
    """Yield every kernel."""
    yield "name", "in Python", "formula"
    for name, kernel in KERNELS.items():
        yield _code(name), _code(f"{kernel.__name__}()"), summary(kernel)


def executors() -> Iterator[Row]:
    """Yield every executor."""
    yield "name", "rows are made", "options"
    for name, executor in EXECUTORS.items():
        options = (f"`--{option.replace('_', '-')}`" for option in executor.options)
        yield _code(name), executor.description, ", ".join(options)


def reproductions() -> Iterator[Row]:
    """Yield every table and figure of the paper that can be made anew."""
    yield "name", "in the paper", "content"
    for entry in (*PAPER_TABLES.values(), *FIGURES.values()):
        yield _code(entry.name), entry.where, entry.title


TABLES: dict[str, Callable[[], Iterable[Row]]] = {
    "methods": methods,
    **{heading.lower(): lambda kind=kind: metrics(kind) for kind, heading in KINDS.items()},
    "datasets": datasets,
    "thresholds": thresholds,
    "kernels": kernels,
    "executors": executors,
    "reproductions": reproductions,
}
"""Tables by the name that stands in a page."""


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the text of a page with its tables; an unknown name raises a KeyError, which ends the build."""
    return PLACE.sub(lambda place: table(TABLES[place["name"]]()), markdown)


def table(rows: Iterable[Row]) -> str:
    """Return rows, the first of which is the head, as a Markdown table.

    >>> print(table([("name", "rule"), ("mean", "|x|")]))
    | name | rule |
    |---|---|
    | mean | \\|x\\| |
    """
    head, *body = ("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)
    return "\n".join((head, "|---" * (head.count("|") - 1) + "|", *body))


def call(method: Any) -> str:
    """Return the Python that makes a method: its class with the options that are not the defaults of the class."""
    options = (field for field in dataclasses.fields(method) if getattr(method, field.name) != field.default)
    return f"{type(method).__name__}({', '.join(f'{o.name}={getattr(method, o.name)!r}' for o in options)})"


def summary(thing: object) -> str:
    """Return the first sentence of a docstring, without its period."""
    return (thing.__doc__ or "").strip().partition("\n")[0].removesuffix(".")


def _code(text: str) -> str:
    return f"`{text}`"
