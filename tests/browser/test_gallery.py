"""The page of a screened folder is sorted, filtered and looked into image by image."""

import numpy as np
import pytest
import torch
from pages import explanation, saved

from repeat_xai.metrics.detection import mixture
from repeat_xai.output.page import write_explain_page, write_screen_page
from repeat_xai.output.screening import Ranked, Score

NAMES = ("zebra", "Ape", "cow 10", "cow 9", "dog", "eel")
SCORES = (0.11, 0.10, 0.09, 0.03, 0.02, 0.01)


@pytest.fixture
def page(tmp_path):
    """Return the page of six images in the order of their scores, with a mixture that separates."""
    scores = [
        Score(tmp_path / f"{name}.png", saved(explanation(i, size=(24, 24)), tmp_path / "images", name).files, score)
        for i, (name, score) in enumerate(zip(NAMES, SCORES, strict=True))
    ]
    many = np.concatenate([np.random.default_rng(0).normal(centre, 0.006, 60) for centre in (0.02, 0.1)])
    split = mixture(torch.tensor(many))
    return write_screen_page(Ranked(scores, [0.99, 0.98, 0.97, 0.03, 0.02, 0.01], [None] * 6, split), [], tmp_path)


def shown(opened):
    return [name.removesuffix(".png") for name in opened.locator("#cards li:not([hidden]) .name").all_text_contents()]


def test_the_gallery_sorts(show, page):
    opened = show(page)
    assert shown(opened) == list(NAMES)
    for order, expected in (
        ("uncertainty", NAMES[::-1]),
        ("name", ("Ape", "cow 9", "cow 10", "dog", "eel", "zebra")),
        ("-name", ("zebra", "eel", "dog", "cow 10", "cow 9", "Ape")),
        ("probability", NAMES[::-1]),
        ("-probability", NAMES),
        ("-uncertainty", NAMES),
    ):
        opened.select_option("#order", order)
        assert shown(opened) == list(expected)


def test_the_gallery_filters(show, page):
    opened = show(page)
    opened.fill("#name", "COW")
    assert shown(opened) == ["cow 10", "cow 9"]
    assert opened.locator("#count").text_content() == "2 of 6 images"
    opened.locator("#least-probability").fill("0.5")
    assert shown(opened) == ["cow 10"]
    opened.fill("#name", "")
    opened.locator("#least-uncertainty").fill("0.095")
    assert shown(opened) == ["zebra", "Ape"]
    assert opened.locator("output[for=least-uncertainty]").text_content() == "0.0950"


def test_filters_at_their_lower_end_let_every_image_pass(show, tmp_path):
    outcomes = [saved(explanation(i, size=(9, 9), name=f"{i}.png"), tmp_path, f"{i}") for i in range(9)]
    opened = show(write_explain_page([outcomes], tmp_path))
    assert shown(opened) == list("012345678")
    opened.select_option("#order", "-name")
    assert shown(opened) == list("876543210")


def test_the_histogram_of_scores_has_the_mixture_on_it(show, page):
    opened = show(page)
    chart = opened.locator(".chart svg")
    assert chart.locator("path.curve").count() == 2
    assert chart.locator("line.cut").count() == 1
    assert "form two groups" in opened.locator(".statement").text_content()
    axis = chart.locator("line.axis").first.bounding_box()
    for bar in chart.locator("rect.bar").all():
        box = bar.bounding_box()
        assert axis["x"] - 1 <= box["x"]
        assert box["x"] + box["width"] <= axis["x"] + axis["width"] + 1


def test_going_back_from_an_image_leads_to_its_card(show, page):
    opened = show(page)
    opened.get_by_role("link", name="cow 10.png").click()
    title = opened.locator("#view-title", has_text="cow 10.png")
    title.wait_for()
    opened.locator("#gallery").wait_for(state="hidden")
    assert (
        "rank 3 of 6 · uncertainty 0.09000 · probability of the more uncertain group 0.970"
        in opened.locator("#facts").text_content()
    )
    opened.get_by_role("link", name="Next").click()
    opened.locator("#view-title", has_text="cow 9.png").wait_for()
    opened.get_by_role("link", name="Previous").click()
    opened.locator("#view-title", has_text="cow 10.png").wait_for()
    opened.get_by_role("link", name="All images").click()
    opened.locator("#cards a:focus", has_text="cow 10.png").wait_for()
    assert not opened.locator("#view").is_visible()
    opened.go_back()
    title.wait_for()


def test_the_next_image_is_the_next_of_those_shown(show, page):
    opened = show(page)
    opened.fill("#name", "cow")
    opened.select_option("#order", "name")
    opened.get_by_role("link", name="cow 9.png").click()
    opened.get_by_role("link", name="Next").click()
    opened.locator("#view-title", has_text="cow 10.png").wait_for()
    assert opened.locator("#next").get_attribute("href") is None


def test_an_address_opens_its_image_and_an_unknown_one_the_gallery(show, page):
    assert show(page, anchor="#image-5").locator("#view-title").text_content() == "dog.png"
    opened = show(page, anchor="#image-77")
    assert opened.locator("#gallery").is_visible()
    assert not opened.locator("#view").is_visible()


def test_everything_can_be_done_by_keyboard(show, page):
    """Tab, Enter, arrows and Escape are enough to sort, open an image, choose a layer, read pixels and go back."""
    opened = show(page)
    keys = opened.keyboard

    def tab_to(selector):
        for _ in range(40):
            keys.press("Tab")
            if opened.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = opened.evaluate("""() => {
                    const active = document.activeElement;
                    const outlined = active.type === "radio" ? active.nextElementSibling : active;
                    return getComputedStyle(outlined).outlineStyle;
                }""")
                assert outline == "solid", f"no ring around {selector}"
                return
        pytest.fail(f"Tab does not reach {selector}")

    tab_to("#theme")
    keys.press("Enter")
    assert opened.evaluate("document.documentElement.style.colorScheme") == "dark"
    tab_to("#order")
    keys.press("ArrowDown")
    keys.press("Enter")
    opened.locator("#cards li:first-child", has_text="eel.png").wait_for()
    tab_to("#name")
    keys.type("cow")
    tab_to("#least-uncertainty")
    keys.press("End")
    assert shown(opened) == []
    keys.press("Home")
    assert shown(opened) == ["cow 9", "cow 10"]
    tab_to("#cards a")
    keys.press("Enter")
    opened.locator("#view-title:focus").wait_for()
    tab_to("input[name=layer]")
    keys.press("ArrowLeft")
    assert opened.locator(".layer-title").text_content() == "importance p"
    tab_to("#strength")
    keys.press("ArrowRight")
    assert opened.locator("#strength-shown").text_content() == "71 %"
    tab_to("canvas.picture")
    place = opened.locator(".reading dd").first
    assert place.text_content() == "12, 12"
    keys.press("ArrowLeft")
    keys.press("ArrowUp")
    assert place.text_content() == "11, 11"
    keys.press("Shift+ArrowDown")
    assert place.text_content() == "11, 21"
    keys.press("Shift+ArrowDown")
    assert place.text_content() == "11, 23"
    assert "input column, row 11, 23; importance 0." in opened.locator("#spoken").text_content()
    tab_to(".tile summary")
    keys.press("Enter")
    assert opened.locator(".provenance").is_visible()
    keys.press("Escape")
    opened.locator("#cards a:focus", has_text="cow 9.png").wait_for()
