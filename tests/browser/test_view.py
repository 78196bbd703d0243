"""An image looked into: its layers, its scale, and every pixel's values as the npz holds them."""

import json
import random
import re
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest
import torch
from pages import explanation, hung

from repeat_xai.output.page import explained, frame
from repeat_xai.types import Explanation


@pytest.fixture
def folder(tmp_path):
    """A photo whose middle was explained by REPEAT, in a map that is not square."""
    hung(explanation(2, size=(40, 56)), tmp_path, "cat", level=0.9)
    return tmp_path


@pytest.fixture
def page(folder):
    return explained([[hung(explanation(2, size=(40, 56)), folder, "cat", level=0.9)]], folder)


def readings(tile):
    """What is read of the pixel: words, and the numbers behind them."""
    terms, told = tile.locator(".reading dt").all_text_contents(), tile.locator(".reading dd")
    words = dict(zip(terms, told.all_text_contents(), strict=True))
    numbers = dict(zip(terms, told.evaluate_all("all => all.map(one => Number(one.dataset.value))"), strict=True))
    return words, numbers


def place_of(found, column, row, box):
    """Where on the screen a pixel's centre lies, within the picture."""
    height, width = found.importance.shape
    left, top, right, bottom = found.photo.box
    x = (left + (column + 0.5) / width * (right - left)) / found.photo.size[1]
    y = (top + (row + 0.5) / height * (bottom - top)) / found.photo.size[0]
    return {"x": x * box["width"], "y": y * box["height"]}


def steps(values):
    return (values.max() - values.min()).item() / 65534


def test_hovering_reads_the_values_of_the_npz(show, page, folder):
    opened = show(page)
    found = Explanation.load(folder / "cat.npz")
    picture = opened.locator("canvas.picture")
    height, width = found.importance.shape
    draw = random.Random(0)
    corners = [(0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)]
    for column, row in [*corners, *((draw.randrange(width), draw.randrange(height)) for _ in range(30))]:
        picture.hover(position=place_of(found, column, row, picture.bounding_box()))
        words, numbers = readings(opened.locator(".tile"))
        assert words["column, row"] == f"{column}, {row}"
        p = found.importance[row, column].item()
        assert abs(numbers["importance"] - p) <= 0.51 * steps(found.importance)
        assert abs(numbers["uncertainty"] - p * (1 - p)) <= 0.51 * steps(found.importance)
        assert numbers["votes"] == pytest.approx(found.vote_share[row, column].item(), abs=1e-6)
        assert numbers["verdict"] == found.verdict(0.9)[row, column].item()
        assert float(words["importance"]) == pytest.approx(p, abs=1e-4)


def test_a_method_without_votes_is_read_too(show, tmp_path):
    outcome = hung(explanation(5, votes=False, size=(33, 20)), tmp_path, "cat")
    opened = show(explained([[outcome]], tmp_path))
    found = Explanation.load(outcome.files.maps)
    picture = opened.locator("canvas.picture")
    certain = found.uncertainty <= found.uncertainty.median()
    for column, row in [(0, 0), (7, 21), (19, 32), (12, 3)]:
        picture.hover(position=place_of(found, column, row, picture.bounding_box()))
        words, numbers = readings(opened.locator(".tile"))
        for name, values in (("importance", found.importance), ("uncertainty", found.uncertainty)):
            assert abs(numbers[name] - values[row, column].item()) <= 0.51 * steps(values)
        assert words["U ≤ median"] == ("yes" if certain[row, column] else "no")


def test_the_mark_lies_on_the_pixel_and_outside_nothing_is_read(show, page):
    opened = show(page)
    picture = opened.locator("canvas.picture").bounding_box()
    opened.mouse.move(picture["x"] + picture["width"] / 2, picture["y"] + picture["height"] / 2)
    mark = opened.locator(".mark").bounding_box()
    pixel = 0.9 * picture["height"] / 40
    assert abs(mark["x"] + mark["width"] / 2 - picture["x"] - picture["width"] / 2) < pixel
    assert abs(mark["y"] + mark["height"] / 2 - picture["y"] - picture["height"] / 2) < pixel
    opened.mouse.move(picture["x"] + 2, picture["y"] + 2)
    assert readings(opened.locator(".tile"))[0] == {
        "column, row": "not seen",
        "importance": "–",
        "uncertainty": "–",
        "votes": "–",
        "verdict": "–",
    }


def colour(opened, x, y):
    """Of the picture as drawn, at a place from 0 to 1 each way."""
    script = """([x, y]) => {
        const canvas = document.querySelector("canvas.picture");
        const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        const place = [x * canvas.width, y * canvas.height].map(Math.floor);
        pen.drawImage(canvas, ...place, 1, 1, 0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    }"""
    return opened.evaluate(script, [x, y])


def set_strength(opened, value):
    opened.locator("#strength").fill(str(value))


def test_layers_and_strength_change_the_picture_as_the_figures_colour_it(show, tmp_path):
    flat = explanation(0, size=(30, 30), photo=np.full((60, 60, 3), 90, np.uint8), box=(0.0, 0.0, 60.0, 60.0))
    share = torch.zeros(30, 30)
    share[:, 10:20], share[:, 20:] = 0.5, 1.0
    found = replace(flat, importance=share, uncertainty=share * (1 - share), vote_share=share)
    opened = show(explained([[hung(found, tmp_path, "cat")]], tmp_path))
    set_strength(opened, 100)
    viridis, magma = ((68, 1, 84), (33, 144, 140), (253, 231, 37)), ((0, 0, 4), (252, 253, 191), (0, 0, 4))
    verdict = ((0, 114, 178), (240, 240, 240), (213, 94, 0))
    for layer, expected in (("importance", viridis), ("uncertainty", magma), ("certainty", verdict)):
        opened.check(f"input[value={layer}]")
        for x, colours in zip((0.15, 0.5, 0.85), expected, strict=True):
            assert colour(opened, x, 0.5) == pytest.approx(colours, abs=2)
    assert opened.locator(".layer-title").text_content() == "verdict at 95 % of the votes"
    set_strength(opened, 0)
    assert colour(opened, 0.5, 0.5) == pytest.approx((90, 90, 90), abs=3)
    assert opened.locator("#strength-shown").text_content() == "0 %"
    set_strength(opened, 50)
    assert colour(opened, 0.15, 0.5) == pytest.approx((45, 102, 134), abs=4)


def test_the_scale_has_numbers_and_points_at_the_pixel(show, page, folder):
    opened = show(page)
    assert opened.locator(".ticks span").all_text_contents() == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    found = Explanation.load(folder / "cat.npz")
    picture = opened.locator("canvas.picture")
    picture.hover(position=place_of(found, 20, 30, picture.bounding_box()))
    left = opened.locator(".pointer").evaluate("one => parseFloat(one.style.left)")
    assert left == pytest.approx(100 * found.importance[30, 20].item(), abs=0.1)


def test_the_histogram_counts_every_pixel_and_shows_the_cuts(show, page, folder):
    opened = show(page)
    opened.check("input[value=certainty]")
    titles = opened.locator(".counts rect title").all_text_contents()
    shares = [float(re.search(r": ([\d.]+) %", title)[1]) for title in titles]
    assert sum(shares) == pytest.approx(100, abs=40 * 0.05)
    votes = Explanation.load(folder / "cat.npz").vote_share
    counts, _ = np.histogram((votes.double() + 1e-7).clamp(max=1).numpy(), 40, (0, 1))
    np.testing.assert_allclose(shares, 100 * counts / votes.numel(), atol=0.06)
    assert opened.locator(".counts .cut + text").all_text_contents() == ["0.1", "0.9"]
    opened.check("input[value=importance]")
    assert opened.locator(".counts .cut").count() == 0


def test_methods_stand_side_by_side_and_are_read_together(show, tmp_path):
    repeat, relax = (explanation(1, votes=votes) for votes in (True, False))
    outcomes = [[hung(repeat, tmp_path / "repeat", "cat")], [hung(relax, tmp_path / "relax", "cat")]]
    opened = show(explained(outcomes, tmp_path))
    first, second = opened.locator(".tile").all()
    boxes = first.bounding_box(), second.bounding_box()
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert opened.locator("#layers label").last.text_content() == "Verdict / Certain part"
    picture = first.locator("canvas.picture")
    picture.hover(position=place_of(repeat, 30, 9, picture.bounding_box()))
    for tile, found in ((first, repeat), (second, relax)):
        words, numbers = readings(tile)
        assert words["column, row"] == "30, 9"
        assert abs(numbers["importance"] - found.importance[9, 30].item()) <= 0.51 * steps(found.importance)
    opened.check("input[value=certainty]")
    assert opened.locator(".layer-title").all_text_contents() == [
        "verdict at 95 % of the votes",
        "importance where U ≤ median",
    ]


def test_what_made_it_and_its_files_are_at_hand(show, page, folder, tmp_path):
    opened = show(page)
    assert not opened.locator(".provenance").is_visible()
    opened.locator("summary").click()
    rows = dict(
        zip(
            opened.locator(".provenance th").all_text_contents(),
            opened.locator(".provenance td").all_text_contents(),
            strict=True,
        )
    )
    made = json.loads((folder / "cat.json").read_text())
    assert rows["method.base.masks"] == str(made["method"]["base"]["masks"])
    assert rows["level"] == "0.9"
    for link in opened.locator(".tile .links a").all():
        assert (folder / link.get_attribute("href")).exists()
    with opened.expect_download() as download:
        opened.get_by_role("button", name="This picture (PNG)").click()
    assert download.value.suggested_filename == "cat.importance.png"
    with PIL.Image.open(download.value.path()) as saved:
        width, height = opened.locator("canvas.picture").evaluate("one => [one.width, one.height]")
        assert saved.width > width
        assert saved.height > height
        assert saved.convert("RGB").getpixel((16 + width // 2, 16 + height // 2)) == tuple(colour(opened, 0.5, 0.5))


def test_a_tap_reads_the_pixel(show, page, folder):
    opened = show(page, width=390, height=800, touch=True)
    found = Explanation.load(folder / "cat.npz")
    picture = opened.locator("canvas.picture")
    picture.tap(position=place_of(found, 10, 20, picture.bounding_box()))
    assert readings(opened.locator(".tile"))[0]["column, row"] == "10, 20"


def test_a_name_with_a_script_in_it_is_only_a_name(show, tmp_path):
    name = "<script>document.title='evil'<\u200b!-- \" onload='x'.png"
    outcomes = [hung(explanation(i, name=f"{i}{name}"), tmp_path, f"{i}") for i in range(2)]
    opened = show(explained([outcomes], tmp_path))
    assert opened.locator("#view-title").text_content() == f"0{name}"
    assert opened.locator("#cards .name").all_text_contents() == [f"0{name}", f"1{name}"]
    assert "evil" not in opened.title()


def test_a_notebook_shows_the_page_in_a_frame(show, tmp_path):
    found = explanation(4)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f'<!doctype html><html data-ready="1"><body>{frame(found)}</body></html>', encoding="utf-8")
    opened = show(notebook)
    inside = opened.frame_locator("iframe")
    picture = inside.locator("canvas.picture")
    picture.hover(position=place_of(found, 5, 40, picture.bounding_box()))
    words, numbers = readings(inside.locator(".tile"))
    assert words["column, row"] == "5, 40"
    assert abs(numbers["importance"] - found.importance[40, 5].item()) <= 0.51 * steps(found.importance)
    assert inside.locator("a").count() == 0
