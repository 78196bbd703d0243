"""The figures of REPEAT (Wickstrøm et al. 2025) and of its appendices: what each shows, of what, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from repeat_xai.experiments.paper.printed_tables import COMPARED

POISONS = ("cifar10+cp", "cifar10+tap", "cifar10+ar", "cifar10+separable")


@final
@dataclass(frozen=True, kw_only=True)
class FigureEntry:
    """A figure."""

    name: str
    where: str
    title: str
    dataset: str
    against: tuple[str, ...] = ()
    """What is told from it: the paper's own, then what stands in for it where it cannot be had."""
    encoder: str = "resnet50"
    """The paper's; where it does not say which, that of its tables."""
    methods: tuple[str, ...] = ("repeat",)
    images: int = 1
    """At most; of scores, as many as the paper has."""
    scored: bool = False
    """Whether it is drawn of scores of many images, as tables are made of."""


ENTRIES = (
    FigureEntry(
        name="motivation",
        where="figure 1",
        title="Variability of a score is not doubt that its pixel is important",
        dataset="voc",
        encoder="resnet18",
        methods=("relax", "repeat"),
    ),
    FigureEntry(name="overview", where="figure 2", title="REPEAT step by step", dataset="voc"),
    FigureEntry(name="threshold-example", where="figure 3", title="One map cut by four thresholds", dataset="voc"),
    FigureEntry(
        name="qualitative",
        where="figure 4 and appendix B, figures 2 to 4",
        title="Photos by every method",
        dataset="voc",
        methods=COMPARED,
        images=4,
    ),
    FigureEntry(
        name="ood-histograms",
        where="figure 5",
        title="Uncertainty of photos and of EuroSAT, by method",
        dataset="voc",
        against=("eurosat",),
        methods=COMPARED,
        images=1000,
        scored=True,
    ),
    FigureEntry(
        name="similarity-range",
        where="appendix A, figure 1",
        title="Similarities between images and their masked copies",
        dataset="voc",
        encoder="resnet18",
        methods=("relax",),
        images=1000,
    ),
    FigureEntry(
        name="poison-histograms",
        where="appendix B, figure 5",
        title="Importance and uncertainty of clean and of poisoned images",
        dataset="cifar10",
        against=POISONS,
        encoder="resnet18",
        images=1000,
        scored=True,
    ),
    FigureEntry(
        name="poisoned-example",
        where="appendix B, figure 6",
        title="An image clean and poisoned",
        dataset="cifar10",
        against=POISONS,
        encoder="resnet18",
    ),
)
FIGURES = {entry.name: entry for entry in ENTRIES}
