"""Every figure of the paper is drawn from the data it is said to be of, and says so where it cannot be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from drawings import PRESET, RELAX, asked, figure, maps, rows_of, said

import repeat_xai as rx
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import COMPARED
from repeat_xai.experiments.settings import Network
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.output.paper_figures import DRAWINGS, drawn
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


def test_every_figure_is_named_placed_and_has_one_drawing():
    assert list(FIGURES) == list(DRAWINGS) == NAMES
    assert len({entry.where for entry in FIGURES.values()}) == len(FIGURES)
    assert all(entry.title and entry.where and entry.encoder and entry.images > 0 for entry in FIGURES.values())
    assert FIGURES["qualitative"].methods == FIGURES["ood-histograms"].methods == COMPARED


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_written_as_a_signed_picture_and_a_page_with_its_fonts(name, root, tmp_path):
    many, rows = (8, rows_of(lambda _, number: float(number))[0]) if name == "poison-histograms" else (1, None)
    made = drawn(asked(name, root, images=many, rows=rows), tmp_path / "new")
    picture, page, title = made
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


def test_a_figure_that_is_there_is_drawn_again_only_of_something_else(root, tmp_path):
    these = asked("threshold-example", root)
    first = drawn(these, tmp_path)
    picture, page, _ = first
    when = picture.stat().st_mtime_ns
    assert drawn(these, tmp_path) == first
    assert picture.stat().st_mtime_ns == when
    for other in (replace(these, seed=1), replace(these, preset=replace(PRESET, repeats=3)), these):
        drawn(other, tmp_path)
        assert picture.stat().st_mtime_ns > when
        when = picture.stat().st_mtime_ns
    page.unlink()
    drawn(these, tmp_path)
    assert page.exists()
    rows, seen = rows_of(lambda _, number: float(number))
    for expected in (2 * 3, 4 * 3):
        drawn(asked("ood-histograms", root, rows=rows), tmp_path)
        assert len(seen) == expected


def test_the_votes_of_the_overview_are_binary_average_to_p_and_are_those_of_repeat(root):
    found = figure("overview", root)
    these = asked("overview", root)
    image = these.first()
    exact = rx.Repeat(base=RELAX, estimator="exact", repeats=4, votes="binary")(these.encoder, image, seed=0)
    runs = [RELAX(these.encoder, image, seed=fold(0, "repeat", k)) for k in (0, 1, 3)]
    *steps, p, uncertainty = maps(found)
    assert len(steps) == 6
    np.testing.assert_allclose(p, exact.importance, atol=1e-6)
    np.testing.assert_allclose(uncertainty, p * (1 - p))
    lines = [axes.lines[0].get_xdata()[0] for axes in found.axes if axes.lines]
    for run, importance, vote, cut in zip(runs, steps[::2], steps[1::2], lines, strict=True):
        np.testing.assert_allclose(importance, run, atol=1e-6)
        assert set(np.unique(vote)) == {0, 1}
        assert cut == pytest.approx(THRESHOLDS["mean"](run[None]).item(), abs=1e-6)
        np.testing.assert_array_equal(vote, importance >= cut)
    every = figure("overview", root, preset=replace(PRESET, repeats=3))
    *steps, p, _ = maps(every)
    np.testing.assert_allclose(np.mean(steps[1::2], axis=0), p)


@pytest.mark.parametrize("swaps", [False, True])
def test_the_cuts_drawn_are_the_thresholds_own(root, swaps):
    found = figure("threshold-example", root, preset=replace(PRESET, swaps_thresholds=swaps))
    importance, *cut = maps(found)
    lines = next(axes.lines for axes in found.axes if len(axes.lines) == 4)
    names = ("mean", "triangle", "otsu", "li") if swaps else ("mean", "otsu", "triangle", "li")
    assert [text for text in said(found) if text in THRESHOLDS] == ["mean", "otsu", "triangle", "li"]
    for line, name, left in zip(lines, names, cut, strict=True):
        at = THRESHOLDS[name](torch.from_numpy(importance)[None]).item()
        assert line.get_xdata()[0] == at
        np.testing.assert_array_equal(np.isnan(left), importance < at)
        assert f"≥ {at:#.4g}: {100 * (importance >= at).mean():.0f} %" in said(found)


def test_the_motivation_marks_where_each_method_is_least_sure(root):
    found = figure("motivation", root)
    these = asked("motivation", root)
    relax, repeat = (these.explained(method, these.first()) for method in ("relax", "repeat"))
    drawn = maps(found)
    for array, expected in zip(
        drawn, (relax.importance, relax.uncertainty, repeat.importance, repeat.uncertainty), strict=True
    ):
        np.testing.assert_array_equal(array, expected)
    marked = next(axes for axes in found.axes if axes.lines)
    for line, explanation in zip(marked.lines, (relax, repeat), strict=True):
        row, column = divmod(explanation.uncertainty.argmax().item(), 224)
        assert (line.get_xdata()[0], line.get_ydata()[0]) == pytest.approx(
            ((column + 0.5) * 60 / 224, (row + 0.5) * 40 / 224)
        )
    at = repeat.uncertainty.argmax().item()
    share = 100 * repeat.vote_share.flatten()[at].item()
    assert any(f"called important by {share:.0f} % of the repeats" in text for text in said(found))


def test_photos_by_every_method_are_as_many_as_there_are_or_asked_for(root):
    found = figure("qualitative", root, images=9)
    these = asked("qualitative", root)
    assert len(maps(found)) == 2 * 2 * 3
    assert len(found.axes) == 2 * (1 + 2 * 3)
    assert [text for text in said(found) if text in ("Saliency", "RELAX", "REPEAT")] == ["Saliency", "RELAX", "REPEAT"]
    second = list(these.every())[1]
    np.testing.assert_array_equal(maps(found)[11], these.explained("repeat", second).uncertainty)
    assert len(maps(figure("qualitative", root, images=1))) == 2 * 3


def test_an_example_is_of_one_image_however_many_are_asked_for(root):
    one, two = (said(figure("threshold-example", root, images=many)) for many in (1, 2))
    assert one == two
    assert any(text.startswith("photos, ") and text.endswith("tiny  ·  8 masks") for text in one)


def test_nothing_but_the_poison_differs_between_an_image_and_itself_poisoned(root, tmp_path):
    assert any("CIFAR-10 under TAP, not the paper's poison" in text for text in said(figure("poisoned-example", root)))
    with np.load(root / "cifar10/clean.npz") as arrays:
        images, labels = arrays["images"], arrays["labels"]
    others = np.arange(12) != asked("poisoned-example", root).numbers("cifar10")[0]
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10/clean.npz", images=images, labels=labels)
    changed = np.where(others[:, None, None, None], 255 - images, images)
    np.savez(tmp_path / "cifar10/poisoned_tap.npz", images=changed, labels=labels)
    clean, clean_doubt, same, same_doubt = maps(figure("poisoned-example", tmp_path))
    np.testing.assert_array_equal(clean, same)
    np.testing.assert_array_equal(clean_doubt, same_doubt)
    changed = maps(figure("poisoned-example", root))
    assert not np.array_equal(changed[0], changed[2])


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("overview", {"entry": FIGURES["overview"]}, "voc: not found under"),
        ("poisoned-example", {"root": Path("nowhere")}, r"cifar10\+cp: not found under nowhere"),
        ("overview", {"network": Network(name="torchvision:none")}, "unknown encoder"),
        ("qualitative", {"images": 0}, "images must be a whole number of at least 1, not 0"),
        ("poison-histograms", {"images": 2}, "a mixture needs the scores of 4 images or more"),
        ("overview", {"entry": replace(FIGURES["overview"], name="cover")}, "unknown figure 'cover'; choose one of"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_line_and_nothing_is_written(name, options, why, root, tmp_path):
    with pytest.raises(rx.RepeatError, match=why) as refused:
        these = asked(name, options.get("root", root), images=options.get("images", 1))
        drawn(replace(these, **{part: options[part] for part in ("entry", "network") if part in options}), tmp_path)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
