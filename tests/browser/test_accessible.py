"""Every kind of page, light and dark, wide and narrow: no serious fault by axe-core's rules, nothing cut off."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pages import explanation, hung
from results import run_of

from repeat_xai.metrics.detection import mixture
from repeat_xai.output.page import explained, screened, tabulated
from repeat_xai.output.screening import Ranked, Score

LONG = "a_very_long_name_of_an_image_" * 4 + ".png"


@pytest.fixture(scope="module")
def explain_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    names = ("cat.png", LONG)
    found = [
        [hung(explanation(i, votes=votes, name=names[i]), folder / f"{votes}", f"{i}") for i in range(2)]
        for votes in (True, False)
    ]
    return explained(found, folder)


@pytest.fixture(scope="module")
def screen_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screened")
    values = np.concatenate([np.random.default_rng(0).normal(centre, 0.006, 20) for centre in (0.1, 0.02)])
    files = [hung(explanation(i, size=(16, 16)), folder / "images", f"{i}").files for i in range(4)]
    scores = [Score(folder / f"{i}.png", files[i % 4], score) for i, score in enumerate(sorted(values)[::-1])]
    known = [score._replace(uncertainty=0.02) for score in scores[:9]]
    split = mixture(torch.tensor(values))
    posterior = split.posterior(torch.tensor([score.uncertainty for score in scores])).tolist()
    return screened(Ranked(scores, posterior, [0.5] * 40, split), known, folder)


@pytest.fixture(scope="module")
def results_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    tables, figures = run_of(folder)
    wide = tables[0].table
    lines = {("net", f"{method}, " * 8): cells for (_, method), cells in wide.lines.items()}
    tables.append(tables[0]._replace(table=replace(wide, title="As broad", lines=lines)))
    lacking = [f"{LONG}: voc (not found)"]
    return tabulated(tables, figures, folder, title="The paper anew", missing=lacking, about={"seed": 0})


def faults(opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(opened).response["violations"]
    return [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found]


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (360, "dark")])
@pytest.mark.parametrize("kind", ["explain", "screen", "screen, opened", "results"])
def test_no_faults_and_nothing_cut_off(show, explain_page, screen_page, results_page, kind, width, scheme):
    pages = {"explain": explain_page, "results": results_page}
    anchor = "#image-2" if "opened" in kind else ""
    opened = show(pages.get(kind, screen_page), anchor=anchor, width=width, height=900, scheme=scheme)
    if opened.locator("#view").is_visible():
        opened.locator("summary").first.click()
        opened.check("input[value=certainty]")
    assert faults(opened) == []
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    wider = """() => [...document.querySelectorAll("main *:not(.hidden, .wide *)")].filter((one) => {
        const box = one.getBoundingClientRect();
        return box.width && (box.right > innerWidth + 1 || box.left < -1);
    }).map((one) => one.outerHTML.slice(0, 80))"""
    assert opened.evaluate(wider) == []


@pytest.mark.parametrize("kind", ["explain", "results"])
def test_the_theme_follows_the_system_until_told_otherwise(show, explain_page, results_page, kind):
    opened = show(explain_page if kind == "explain" else results_page, scheme="dark")

    def paper():
        return opened.evaluate("getComputedStyle(document.body).backgroundColor")

    assert paper() == "rgb(21, 23, 26)"
    opened.get_by_role("button", name="Light theme").click()
    assert paper() == "rgb(255, 255, 255)"
    opened.get_by_role("button", name="Dark theme").click()
    assert paper() == "rgb(21, 23, 26)"
