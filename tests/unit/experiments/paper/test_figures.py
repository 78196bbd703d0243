"""Every figure of the paper shows the data that it should, and one that cannot be made is refused in a line."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from drawings import PRESET, RELAX, drawn_figure, figure_request, maps_in, rows_with, texts_in

import repeat_xai as rx
from repeat_xai.experiments.paper.figure_data import FIGURE_DATA
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import COMPARED
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.output.paper_figures import write_figure
from repeat_xai.seeds import fold

pytestmark = pytest.mark.usefixtures("tiny")
NAMES = [
    "motivation",
    "overview",
    "threshold-example",
    "qualitative",
    "ood-histograms",
    "similarity-range",
    "poison-histograms",
    "poisoned-example",
]


def test_every_figure_has_a_title_a_place_in_the_paper_and_data():
    assert list(FIGURES) == list(FIGURE_DATA) == NAMES
    assert len({figure.where for figure in FIGURES.values()}) == len(FIGURES)
    assert all(figure.title and figure.where and figure.encoder and figure.images > 0 for figure in FIGURES.values())
    assert FIGURES["qualitative"].methods == FIGURES["ood-histograms"].methods == COMPARED


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_written_as_a_signed_png_and_a_pdf_with_truetype_fonts(name, root, tmp_path):
    many, rows = (8, rows_with(lambda _, number: float(number))[0]) if name == "poison-histograms" else (1, None)
    picture, page, title = write_figure(figure_request(name, root, images=many, rows=rows), tmp_path / "new")
    assert (picture.name, page.name) == (f"{name}-tiny.png", f"{name}-tiny.pdf")
    assert title == f"{FIGURES[name].title} ({FIGURES[name].where}), tiny"
    assert sorted((tmp_path / "new").iterdir()) == sorted((picture, page))
    with PIL.Image.open(picture) as opened:
        assert opened.info["Software"].startswith("repeat-xai")
        assert opened.width >= 600
        assert np.asarray(opened.convert("L")).std() > 10
    content = page.read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert FIGURES[name].title.encode() in content
    assert b"/CreationDate" not in content


@pytest.mark.slow
def test_an_existing_figure_is_drawn_again_only_if_something_changed(root, tmp_path):
    request = figure_request("threshold-example", root)
    first = write_figure(request, tmp_path)
    picture, page, _ = first
    when = picture.stat().st_mtime_ns
    assert write_figure(request, tmp_path) == first
    assert picture.stat().st_mtime_ns == when
    for other in (replace(request, seed=1), replace(request, preset=replace(PRESET, repeats=3)), request):
        write_figure(other, tmp_path)
        assert picture.stat().st_mtime_ns > when
        when = picture.stat().st_mtime_ns
    page.unlink()
    write_figure(request, tmp_path)
    assert page.exists()
    rows, requests = rows_with(lambda _, number: float(number))
    for expected in (2 * 3, 4 * 3):
        write_figure(figure_request("ood-histograms", root, rows=rows), tmp_path)
        assert len(requests) == expected


def test_the_votes_of_the_overview_are_binary_and_average_to_the_map_of_repeat(root):
    figure = drawn_figure("overview", root)
    request = figure_request("overview", root)
    image = request.first_image()
    exact = rx.Repeat(base=RELAX, estimator="exact", repeats=4, votes="binary")(request.encoder, image, seed=0)
    runs = [RELAX(request.encoder, image, seed=fold(0, "repeat", k)).importance for k in (0, 1, 3)]
    *steps, p, uncertainty = maps_in(figure)
    assert len(steps) == 6
    np.testing.assert_allclose(p, exact.importance, atol=1e-6)
    np.testing.assert_allclose(uncertainty, p * (1 - p))
    lines = [axes.lines[0].get_xdata()[0] for axes in figure.axes if axes.lines]
    for run, importance, vote, cut in zip(runs, steps[::2], steps[1::2], lines, strict=True):
        np.testing.assert_allclose(importance, run, atol=1e-6)
        assert set(np.unique(vote)) == {0, 1}
        assert cut == pytest.approx(THRESHOLDS["mean"](run[None]).item(), abs=1e-6)
        np.testing.assert_array_equal(vote, importance >= cut)
    every_run = drawn_figure("overview", root, preset=replace(PRESET, repeats=3))
    *steps, p, _ = maps_in(every_run)
    np.testing.assert_allclose(np.mean(steps[1::2], axis=0), p)


@pytest.mark.parametrize("swaps", [False, True])
def test_every_threshold_cuts_the_map_where_it_should(root, swaps):
    figure = drawn_figure("threshold-example", root, preset=replace(PRESET, swaps_thresholds=swaps))
    importance, *cut = maps_in(figure)
    lines = next(axes.lines for axes in figure.axes if len(axes.lines) == 4)
    names = ("mean", "triangle", "otsu", "li") if swaps else ("mean", "otsu", "triangle", "li")
    assert [text for text in texts_in(figure) if text in THRESHOLDS] == ["mean", "otsu", "triangle", "li"]
    for line, name, left in zip(lines, names, cut, strict=True):
        at = THRESHOLDS[name](torch.from_numpy(importance)[None]).item()
        assert line.get_xdata()[0] == at
        np.testing.assert_array_equal(np.isnan(left), importance < at)
        assert f"≥ {at:#.4g}: {100 * (importance >= at).mean():.0f} %" in texts_in(figure)


@pytest.mark.slow
def test_the_motivation_marks_the_pixel_that_each_method_is_least_sure_of(root):
    figure = drawn_figure("motivation", root)
    request = figure_request("motivation", root)
    relax, repeat = (request.explain(method, request.first_image()) for method in ("relax", "repeat"))
    arrays = maps_in(figure)
    for array, expected in zip(
        arrays, (relax.importance, relax.uncertainty, repeat.importance, repeat.uncertainty), strict=True
    ):
        np.testing.assert_array_equal(array, expected)
    marked = next(axes for axes in figure.axes if axes.lines)
    for line, explanation in zip(marked.lines, (relax, repeat), strict=True):
        row, column = divmod(explanation.uncertainty.argmax().item(), 224)
        assert (line.get_xdata()[0], line.get_ydata()[0]) == pytest.approx(
            ((column + 0.5) * 60 / 224, (row + 0.5) * 40 / 224)
        )
    at = repeat.uncertainty.argmax().item()
    share = 100 * repeat.vote_share.flatten()[at].item()
    assert any(f"called important by {share:.0f} % of the repeats" in text for text in texts_in(figure))


def test_the_grid_has_as_many_photos_as_requested_if_there_are_so_many(root):
    figure = drawn_figure("qualitative", root, images=9)
    request = figure_request("qualitative", root)
    assert len(maps_in(figure)) == 2 * 2 * 3
    assert len(figure.axes) == 2 * (1 + 2 * 3)
    assert [text for text in texts_in(figure) if text in ("Saliency", "RELAX", "REPEAT")] == [
        "Saliency",
        "RELAX",
        "REPEAT",
    ]
    second = list(request.readable_images())[1]
    np.testing.assert_array_equal(maps_in(figure)[11], request.explain("repeat", second).uncertainty)
    assert len(maps_in(drawn_figure("qualitative", root, images=1))) == 2 * 3


def test_an_example_shows_one_image_however_many_are_requested(root):
    texts, of_two_images = (texts_in(drawn_figure("threshold-example", root, images=many)) for many in (1, 2))
    assert texts == of_two_images
    assert any(text.startswith("photos, ") and text.endswith("tiny  ·  8 masks") for text in texts)


def test_a_clean_and_a_poisoned_image_are_explained_under_the_same_masks(root, tmp_path):
    assert any(
        "CIFAR-10 under TAP, not the paper's poison" in text
        for text in texts_in(drawn_figure("poisoned-example", root))
    )
    with np.load(root / "cifar10/clean.npz") as arrays:
        images, labels = arrays["images"], arrays["labels"]
    others = np.arange(12) != figure_request("poisoned-example", root).numbers("cifar10")[0]
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10/clean.npz", images=images, labels=labels)
    changed = np.where(others[:, None, None, None], 255 - images, images)
    np.savez(tmp_path / "cifar10/poisoned_tap.npz", images=changed, labels=labels)
    clean, clean_uncertainty, same, same_uncertainty = maps_in(drawn_figure("poisoned-example", tmp_path))
    np.testing.assert_array_equal(clean, same)
    np.testing.assert_array_equal(clean_uncertainty, same_uncertainty)
    changed = maps_in(drawn_figure("poisoned-example", root))
    assert not np.array_equal(changed[0], changed[2])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("overview", {"figure": FIGURES["overview"]}, "voc: not found"),
        ("poisoned-example", {"root": Path("nowhere")}, r"cifar10\+cp: not found"),
        ("overview", {"encoder_spec": EncoderSpec(name="torchvision:none")}, "unknown encoder"),
        ("qualitative", {"images": 0}, "images must be"),
        ("poison-histograms", {"images": 2}, "4 images"),
        ("overview", {"figure": replace(FIGURES["overview"], name="cover")}, "unknown figure 'cover'"),
    ],
)
def test_a_figure_that_cannot_be_made_is_refused_in_one_line_and_nothing_is_written(
    name, options, message, root, tmp_path
):
    with pytest.raises(rx.RepeatError, match=message) as refused:
        request = figure_request(name, options.get("root", root), images=options.get("images", 1))
        changes = {part: options[part] for part in ("figure", "encoder_spec") if part in options}
        write_figure(replace(request, **changes), tmp_path)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
