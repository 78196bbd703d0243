"""Every kind of page, light and dark, wide and narrow, has no violation of axe-core's rules and nothing cut off."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pages import explanation, saved
from results import run_of

from repeat_xai.errors import RepeatError
from repeat_xai.metrics.detection import mixture
from repeat_xai.output.page import FailedRow, write_explain_page, write_screen_page, write_tables_page
from repeat_xai.output.results_folder import ImageOutcome
from repeat_xai.output.screening import Ranked, Score

LONG = "a_very_long_name_of_an_image_" * 4 + ".png"


@pytest.fixture(scope="module")
def explain_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    names = ("cat.png", LONG)
    failed = ImageOutcome(folder / LONG, error=RepeatError(f"{folder / LONG}: is damaged"))
    outcomes = [
        [saved(explanation(i, votes=votes, name=names[i]), folder / f"{votes}", f"{i}") for i in range(2)]
        for votes in (True, False)
    ]
    return write_explain_page([[*of_method, failed] for of_method in outcomes], folder)


@pytest.fixture(scope="module")
def screen_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screened")
    values = np.concatenate([np.random.default_rng(0).normal(centre, 0.006, 20) for centre in (0.1, 0.02)])
    files = [saved(explanation(i, size=(16, 16)), folder / "images", f"{i}").files for i in range(4)]
    scores = [Score(folder / f"{i}.png", files[i % 4], score) for i, score in enumerate(sorted(values)[::-1])]
    known = [score._replace(uncertainty=0.02) for score in scores[:9]]
    split = mixture(torch.tensor(values))
    posterior = split.posterior(torch.tensor([score.uncertainty for score in scores])).tolist()
    return write_screen_page(Ranked(scores, posterior, [0.5] * 40, split), known, folder)


@pytest.fixture(scope="module")
def results_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    tables, figures = run_of(folder)
    wide = tables[0].table
    lines = {("net", f"{method}, " * 8): cells for (_, method), cells in wide.lines.items()}
    tables.append(tables[0]._replace(table=replace(wide, title="As broad", lines=lines)))
    missing, failed = [f"{LONG}: voc (not found)"], [FailedRow(LONG, "voc", "net", "repeat", "is damaged")]
    about = {"seed": 0}
    return write_tables_page(
        tables, figures, folder, title="Tables of the paper", missing=missing, failures=failed, about=about
    )


def violations(opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    rules = axe.run(opened).response["violations"]
    return [(rule["id"], rule["impact"], rule["nodes"][0]["html"][:200]) for rule in rules]


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (360, "dark")])
@pytest.mark.parametrize("kind", ["explain", "screen", "screen, opened", "results"])
def test_pages_pass_axe_and_fit_their_width(show, explain_page, screen_page, results_page, kind, width, scheme):
    pages = {"explain": explain_page, "results": results_page}
    anchor = "#image-2" if "opened" in kind else ""
    opened = show(pages.get(kind, screen_page), anchor=anchor, width=width, height=900, scheme=scheme)
    if opened.locator("#view").is_visible():
        opened.locator(".tile summary").first.click()
        opened.check("input[value=certainty]")
    if opened.locator("#failures").count():
        opened.locator("#failures summary").click()
    if not opened.locator("#guide, .guide").first.evaluate("guide => guide.open"):
        opened.locator(".guide summary").first.click()
    assert violations(opened) == []
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    cut_off = """() => [...document.querySelectorAll("main *:not(.hidden, .wide *)")].filter((node) => {
        const box = node.getBoundingClientRect();
        return box.width && (box.right > innerWidth + 1 || box.left < -1);
    }).map((node) => node.outerHTML.slice(0, 80))"""
    assert opened.evaluate(cut_off) == []


@pytest.mark.parametrize("kind", ["explain", "results"])
def test_the_theme_is_the_systems_until_the_button_is_pressed(show, explain_page, results_page, kind):
    opened = show(explain_page if kind == "explain" else results_page, scheme="dark")

    def background():
        return opened.evaluate("getComputedStyle(document.body).backgroundColor")

    assert background() == "rgb(21, 23, 26)"
    opened.get_by_role("button", name="Light theme").click()
    assert background() == "rgb(255, 255, 255)"
    opened.get_by_role("button", name="Dark theme").click()
    assert background() == "rgb(21, 23, 26)"
