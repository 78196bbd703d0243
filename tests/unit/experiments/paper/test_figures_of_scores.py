"""Figures of many images: histograms and curves of the rows that tables are made of."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from drawings import PRESET, asked, figure, rows_of, said

import repeat_xai as rx
from repeat_xai.experiments.paper.printed_tables import COMPARED
from repeat_xai.metrics import detection as detect
from repeat_xai.output.paper_figures import DRAWINGS

pytestmark = pytest.mark.usefixtures("tiny")


def test_similarities_are_of_all_images_and_masks(root):
    axes = figure("similarity-range", root).axes[0]
    assert sum(patch.get_height() for patch in axes.patches) == 2 * 8
    assert axes.get_title() == "2 images × 8 masks"


def test_histograms_show_the_rows_given_by_method_and_how_well_they_tell(root):
    def score(setting, number):
        unknown = Path(setting.dataset).name == "fields"
        return 1.0 + number + (10 if unknown and isinstance(setting.method, rx.Repeat) else 0)

    rows, seen = rows_of(score)
    these = asked("ood-histograms", root, rows=rows)
    found = DRAWINGS["ood-histograms"](replace(these, entry=replace(these.entry, methods=COMPARED)))
    titles = [axes.get_title().split("\n") for axes in found.axes]
    assert [name for name, _ in titles] == [
        "Saliency",
        "Guided backpropagation",
        "Integrated gradients",
        "RELAX",
        "REPEAT",
    ]
    assert [area for _, area in titles] == ["AUROC 0.50"] * 4 + ["AUROC 1.00"]
    assert [text.get_text() for text in found.legends[0].get_texts()] == ["photos (2)", "fields (2)"]
    assert [setting.method for setting, _ in seen[::2]] == [PRESET.method(name) for name in COMPARED]
    assert all(setting.protocol == "paper" and sorted(numbers) == [0, 1] for setting, numbers in seen)


def test_what_fails_is_left_out_of_histograms_unless_all_does(root):
    some, _ = rows_of(lambda setting, number: "no codes" if number == 0 else 2.0)
    found = figure("ood-histograms", root, rows=some)
    assert [text.get_text() for text in found.legends[0].get_texts()] == ["photos (1)", "fields (1)"]
    none, _ = rows_of(lambda setting, number: "no codes")
    with pytest.raises(rx.RepeatError, match=r"^ood-histograms: nothing of .*photos could be explained \(no codes\)$"):
        figure("ood-histograms", root, rows=none)


def test_half_of_the_images_are_poisoned_and_none_is_both(root):
    rows, seen = rows_of(lambda setting, number: number + (3.5 if "+" in setting.dataset else 0.0))
    found = figure("poison-histograms", root, images=12, rows=rows)
    (poisoned, some), (clean, others) = [(setting.dataset, numbers) for setting, numbers in seen]
    assert (poisoned, clean) == ("cifar10+tap", "cifar10")
    assert sorted(some + others) == list(range(12))
    assert len(some) == len(others) == 6
    known, unknown = torch.tensor(others).double(), torch.tensor(some).double() + 3.5
    split = detect.mixture(torch.cat((known, unknown)))
    expected = detect.roc(split.log_odds(known), split.log_odds(unknown))
    *_, right = found.axes
    np.testing.assert_array_equal(right.lines[2].get_xdata(), expected.false)
    np.testing.assert_array_equal(right.lines[2].get_ydata(), expected.true)
    legend = [text.get_text() for text in found.legends[0].get_texts()]
    assert legend[:2] == ["clean (6)", "poisoned (6)"]
    assert legend[3] == f"uncertainty, AUROC {expected.area:.2f}"
    assert [axes.get_title() for axes in found.axes] == ["mean importance", "mean uncertainty", "ROC of the mixture"]
    assert any("CIFAR-10 under TAP, not the paper's poison" in text for text in said(found))
