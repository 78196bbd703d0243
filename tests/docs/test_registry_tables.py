"""The tables of the documentation are those of the registries."""

import importlib.util
import re

import pytest
from docs.blocks import PAGES, ROOT

from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.experiments.executors.executor_names import EXECUTORS
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import TABLES
from repeat_xai.methods.method_names import METHODS
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.metrics import KINDS, METRICS, MapMetric

specification = importlib.util.spec_from_file_location("registry_tables", ROOT / "tools/registry_tables.py")
tool = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tool)

NAMES = {
    "methods": list(METHODS),
    "datasets": list(DATASETS),
    "thresholds": list(THRESHOLDS),
    "kernels": list(KERNELS),
    "executors": list(EXECUTORS),
    "reproductions": [*TABLES, *FIGURES],
    **{
        heading.lower(): [name for name, metric in METRICS.items() if isinstance(metric, kind)]
        for kind, heading in KINDS.items()
    },
}


@pytest.mark.parametrize("table", tool.TABLES)
def test_a_table_has_a_row_for_each_name_and_no_empty_description(table):
    head, *rows = tool.TABLES[table]()
    assert [row[0] for row in rows] == [f"`{name}`" for name in NAMES[table]]
    assert all(len(row) == len(head) and row[1] for row in rows)


def test_every_table_is_on_a_page_and_every_place_has_a_table():
    places = [name for page in PAGES for name in tool.PLACE.findall(page.read_text(encoding="utf-8"))]
    assert sorted(places) == sorted(tool.TABLES)


def test_what_is_registered_appears_in_the_page(monkeypatch):
    metric = MapMetric(name="darkness", better="lower", description="share of | dark pixels", function=len)
    monkeypatch.setitem(METRICS, "darkness", metric)
    page = tool.on_page_markdown("Before.\n\n<!-- table: metrics of a map -->\n\nAfter.")
    assert page.startswith("Before.\n\n| name | measures |")
    assert r"| `darkness` | share of \| dark pixels | map | lower |  |" in page
    assert re.search(r"\|\n\nAfter\.$", page)


def test_a_table_of_an_unknown_name_ends_the_build():
    with pytest.raises(KeyError, match="mistakes"):
        tool.on_page_markdown("<!-- table: mistakes -->")


def test_a_method_is_shown_by_the_options_that_are_not_its_defaults():
    assert tool.call(METHODS["saliency"]) == "Saliency()"
    assert tool.call(METHODS["vargrad"]) == "SmoothGrad(moment='variance')"
