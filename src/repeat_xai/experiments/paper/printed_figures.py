"""The figures of REPEAT (Wickstrøm et al. 2025) and its appendices, each with its datasets, encoder and methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from repeat_xai.experiments.paper.printed_tables import COMPARED

POISONS = ("cifar10+cp", "cifar10+tap", "cifar10+ar", "cifar10+separable")


@final
@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """A figure of the paper, and what it is made from."""

    name: str
    where: str
    """Its number in the paper."""
    title: str
    dataset: str
    against: tuple[str, ...] = ()
    """The dataset shown beside it: the paper's own, then those to use instead if it is not available."""
    encoder: str = "resnet50"
    """The paper's encoder; where the paper does not name it, the one of its tables."""
    methods: tuple[str, ...] = ("repeat",)
    images: int = 1
    """The largest number of images; for figures of scores, the paper's number."""
    scored: bool = False
    """Whether the figure shows scores of many images, taken from the same rows as the tables."""


_FIGURES = (
    PaperFigure(
        name="motivation",
        where="figure 1",
        title="Variability of a score is not doubt that its pixel is important",
        dataset="voc",
        encoder="resnet18",
        methods=("relax", "repeat"),
    ),
    PaperFigure(name="overview", where="figure 2", title="REPEAT step by step", dataset="voc"),
    PaperFigure(name="threshold-example", where="figure 3", title="One map cut by four thresholds", dataset="voc"),
    PaperFigure(
        name="qualitative",
        where="figure 4 and appendix B, figures 2 to 4",
        title="Photos by every method",
        dataset="voc",
        methods=COMPARED,
        images=4,
    ),
    PaperFigure(
        name="ood-histograms",
        where="figure 5",
        title="Uncertainty of photos and of EuroSAT, by method",
        dataset="voc",
        against=("eurosat",),
        methods=COMPARED,
        images=1000,
        scored=True,
    ),
    PaperFigure(
        name="similarity-range",
        where="appendix A, figure 1",
        title="Similarities between images and their masked copies",
        dataset="voc",
        encoder="resnet18",
        methods=("relax",),
        images=1000,
    ),
    PaperFigure(
        name="poison-histograms",
        where="appendix B, figure 5",
        title="Importance and uncertainty of clean and of poisoned images",
        dataset="cifar10",
        against=POISONS,
        encoder="resnet18",
        images=1000,
        scored=True,
    ),
    PaperFigure(
        name="poisoned-example",
        where="appendix B, figure 6",
        title="An image clean and poisoned",
        dataset="cifar10",
        against=POISONS,
        encoder="resnet18",
    ),
)
FIGURES = {figure.name: figure for figure in _FIGURES}
"""The figures by name."""
