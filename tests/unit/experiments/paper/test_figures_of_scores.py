"""Figures of scores of many images show the rows that tables are made of."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from drawings import PRESET, drawn_figure, figure_request, rows_with, texts_in

import repeat_xai as rx
from repeat_xai.experiments.paper.figure_data import FIGURE_DATA
from repeat_xai.experiments.paper.printed_tables import COMPARED
from repeat_xai.metrics import detection
from repeat_xai.output.paper_figures import draw_figure

pytestmark = pytest.mark.usefixtures("tiny")


def test_the_histogram_of_similarities_counts_every_image_under_every_mask(root):
    axes = drawn_figure("similarity-range", root).axes[0]
    assert sum(patch.get_height() for patch in axes.patches) == 2 * 8
    assert axes.get_title() == "2 images × 8 masks"


def test_histograms_show_the_scores_by_method_with_their_auroc(root):
    def score(setting, number):
        unknown = Path(setting.dataset).name == "fields"
        return 1.0 + number + (10 if unknown and isinstance(setting.method, rx.Repeat) else 0)

    rows, requests = rows_with(score)
    request = figure_request("ood-histograms", root, rows=rows)
    request = replace(request, figure=replace(request.figure, methods=COMPARED))
    figure = draw_figure(FIGURE_DATA["ood-histograms"](request))
    titles = [axes.get_title().split("\n") for axes in figure.axes]
    assert [name for name, _ in titles] == [
        "Saliency",
        "Guided backpropagation",
        "Integrated gradients",
        "RELAX",
        "REPEAT",
    ]
    assert [area for _, area in titles] == ["AUROC 0.50"] * 4 + ["AUROC 1.00"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["photos (2)", "fields (2)"]
    assert [setting.method for setting, _ in requests[::2]] == [PRESET.method(name) for name in COMPARED]
    assert all(setting.protocol == "paper" and sorted(numbers) == [0, 1] for setting, numbers in requests)


def test_failed_images_are_left_out_of_histograms_and_if_all_failed_there_is_no_figure(root):
    some_fail, _ = rows_with(lambda setting, number: "no codes" if number == 0 else 2.0)
    figure = drawn_figure("ood-histograms", root, rows=some_fail)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["photos (1)", "fields (1)"]
    all_fail, _ = rows_with(lambda setting, number: "no codes")
    with pytest.raises(rx.RepeatError, match=r"ood-histograms.*photos.*no codes"):
        drawn_figure("ood-histograms", root, rows=all_fail)


def test_half_of_the_images_are_poisoned_and_the_other_half_is_clean(root):
    rows, requests = rows_with(lambda setting, number: number + (3.5 if "+" in setting.dataset else 0.0))
    figure = drawn_figure("poison-histograms", root, images=12, rows=rows)
    (poisoned, poisoned_numbers), (clean, clean_numbers) = [(setting.dataset, numbers) for setting, numbers in requests]
    assert (poisoned, clean) == ("cifar10+tap", "cifar10")
    assert sorted(poisoned_numbers + clean_numbers) == list(range(12))
    assert len(poisoned_numbers) == len(clean_numbers) == 6
    known, unknown = torch.tensor(clean_numbers).double(), torch.tensor(poisoned_numbers).double() + 3.5
    split = detection.mixture(torch.cat((known, unknown)))
    expected = detection.roc(split.log_odds(known), split.log_odds(unknown))
    *_, right = figure.axes
    np.testing.assert_array_equal(right.lines[2].get_xdata(), expected.false)
    np.testing.assert_array_equal(right.lines[2].get_ydata(), expected.true)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[:2] == ["clean (6)", "poisoned (6)"]
    assert legend[3] == f"uncertainty, AUROC {expected.area:.2f}"
    assert [axes.get_title() for axes in figure.axes] == ["mean importance", "mean uncertainty", "ROC of the mixture"]
    assert any("CIFAR-10 under TAP, not the paper's poison" in text for text in texts_in(figure))
