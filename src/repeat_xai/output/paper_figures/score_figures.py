"""Figures of numbers of many images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from repeat_xai.data.open_dataset import dataset_title
from repeat_xai.engine.mask_bounds import similarity_range as measured_range
from repeat_xai.errors import EncoderError
from repeat_xai.experiments.columns import scores
from repeat_xai.experiments.settings import Setting
from repeat_xai.methods.base import Method
from repeat_xai.methods.spread import Spread
from repeat_xai.metrics.detection import mixture, roc
from repeat_xai.output.figures import histograms_by_method, similarities
from repeat_xai.output.figures.canvas import NARROW, WIDE, in_small_print
from repeat_xai.output.figures.captions import TITLES
from repeat_xai.output.figures.detection_figure import told_apart
from repeat_xai.output.paper_figures.figure_request import Asked

MAPS = ("importance", "uncertainty")


def ood_histograms(asked: Asked) -> Figure:
    """Mean uncertainty of two datasets by every method, with how well it tells them apart."""
    against = asked.against()
    panels = {}
    for method in asked.entry.methods:
        known, unknown = (
            _means(asked, asked.setting(dataset, method), asked.numbers(dataset), ("uncertainty",))["uncertainty"]
            for dataset in (asked.entry.dataset, against)
        )
        title = f"{_words(asked.preset.method(method))}\nAUROC {roc(known, unknown).area:.2f}"
        panels[title] = {dataset_title(asked.entry.dataset): known, dataset_title(against): unknown}
    return in_small_print(histograms_by_method(panels, name="mean uncertainty of an image"), asked.note(), width=WIDE)


def similarity_range(asked: Asked) -> Figure:
    """How alike images stay under the preset's masks."""
    relax = asked.preset.relax
    found = measured_range(
        asked.encoder,
        asked.every(),
        masks=relax.masks,
        grid=relax.grid,
        similarity=relax.similarity,
        chunk=relax.chunk,
        seed=asked.seed,
    )
    note = f"{dataset_title(asked.entry.dataset)}  ·  {asked.network.label}"
    return in_small_print(similarities(found), note, width=NARROW)


def poison_histograms(asked: Asked) -> Figure:
    """Half of the images poisoned, the other half clean, and a mixture that is not told which are which."""
    against = asked.against()
    numbers = asked.numbers(against)
    half = len(numbers) // 2
    (method,) = asked.entry.methods
    poisoned = _means(asked, asked.setting(against, method), numbers[:half], MAPS)
    clean = _means(asked, asked.setting(asked.entry.dataset, method), numbers[half:], MAPS)
    splits = {of: mixture(torch.cat((clean[of], poisoned[of])), seed=asked.seed) for of in MAPS}
    curves = {of: roc(splits[of].log_odds(clean[of]), splits[of].log_odds(poisoned[of])) for of in MAPS}
    groups = {of: {"clean": clean[of], "poisoned": poisoned[of]} for of in MAPS}
    return told_apart(groups, splits, curves, note=asked.note(asked.poison(against)))


def _means(asked: Asked, setting: Setting, numbers: Sequence[int], maps: Sequence[str]) -> dict[str, Tensor]:
    """The mean of each of an image's maps, of the images that could be explained."""
    rows = [row for row in (asked.rows or asked.worker.rows)(setting, numbers) if row is not None]
    whole = [row for row in rows if row.failure is None]
    if not whole:
        why = next((row.failure for row in rows), "no image was given")
        raise EncoderError(f"{asked.entry.name}: nothing of {setting.dataset} could be explained ({why})")
    return {of: scores(whole, f"mean.{of}") for of in maps}


def _words(method: Method) -> str:
    """As the figures of maps call it."""
    named = type(method.base if isinstance(method, Spread) else method).__name__
    return TITLES.get(named, named)
