"""The tables of REPEAT (Wickstrøm et al. 2025) and its appendices, with the values printed there.

The paper's ViT is ViT-B/16, and its weights are torchvision's, trained on ImageNet. Its AUROC is that of the mixture's
posterior; our tables have the AUROC of the raw score in a column beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from repeat_xai.experiments.columns import Column, EmprtColumn, MeanColumn, RunsColumn
from repeat_xai.experiments.detection_columns import SHARES, DetectionColumn, PoisonColumn
from repeat_xai.experiments.measures import EncoderScores
from repeat_xai.metrics.metric import MapName
from repeat_xai.metrics.robustness import RobustnessScore

PrintedValues = Mapping[str, Mapping[str, tuple[float | None, ...]]]
"""By encoder and method, a value for each column; None where the paper prints none."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TableBlock:
    """The part of a table that is about one dataset."""

    dataset: str
    encoders: tuple[str, ...]
    """The paper's encoders, by their names in torchvision."""
    methods: tuple[str, ...]
    columns: tuple[Column, ...]
    printed: PrintedValues = field(default_factory=dict)
    both_maps: bool = False
    """Whether each method has a line for importance and one for uncertainty."""
    note: str = ""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PaperTable:
    """A table of the paper."""

    name: str
    where: str
    """Its number in the paper."""
    title: str
    blocks: tuple[TableBlock, ...]


BOTH = ("resnet50", "vit_b_16")
COMPARED = ("saliency", "guided_backprop", "integrated_gradients", "relax", "repeat")
BASES = ("repeat:kernel_shap", "repeat")
WITHOUT_SPREAD = (
    # `once:` leaves a method its own importance, where its plain name is the mean of several passes
    "once:saliency",
    "once:kernel_shap",
    "once:guided_backprop",
    "once:integrated_gradients",
    "relax",
    "repeat",
)
ROBUSTNESS_IMAGES = 10
"""The number of images on which robustness is measured: each takes hundreds of explanations."""


def _printed(methods: tuple[str, ...], resnet50: str, vit: str, *, beside: int = 0) -> PrintedValues:
    """Return the printed values of one column; the `beside` columns that only our table has are left without one."""
    rows = {"resnet50": resnet50.split(), "vit_b_16": vit.split()}
    return {
        encoder: {method: (float(value), *[None] * beside) for method, value in zip(methods, values, strict=True)}
        for encoder, values in rows.items()
    }


def _block(dataset: str, methods: tuple[str, ...], column: Column, resnet50: str, vit: str) -> TableBlock:
    return TableBlock(
        dataset=dataset,
        encoders=BOTH,
        methods=methods,
        columns=(column,),
        printed=_printed(methods, resnet50, vit),
    )


def _ood_block(dataset: str, methods: tuple[str, ...], against: str, resnet50: str, vit: str) -> TableBlock:
    return TableBlock(
        dataset=dataset,
        encoders=BOTH,
        methods=methods,
        columns=(DetectionColumn(against=against, criterion="posterior"), DetectionColumn(against=against)),
        printed=_printed(methods, resnet50, vit, beside=1),
    )


COMPLEXITY = MeanColumn(metric="complexity", map_name="uncertainty")
LIPSCHITZ = EncoderScores(metric="local_lipschitz", score=RobustnessScore(metric="local_lipschitz"))
ROBUSTNESS = MeanColumn(metric="local_lipschitz", measure=LIPSCHITZ, max_images=ROBUSTNESS_IMAGES)
IMPORTANCE_COLUMNS = (MeanColumn(metric="top_k_intersection"), MeanColumn(metric="complexity"), ROBUSTNESS)


def _importance_block(dataset: str, resnet50: str, vit: str) -> TableBlock:
    """Return a block of localisation, complexity and robustness; a method has one value for each of them."""
    rows = {"resnet50": resnet50.split(), "vit_b_16": vit.split()}
    printed = {
        encoder: {
            method: tuple(float(value) for value in values[3 * at : 3 * at + 3])
            for at, method in enumerate(WITHOUT_SPREAD)
        }
        for encoder, values in rows.items()
    }
    return TableBlock(
        dataset=dataset, encoders=BOTH, methods=WITHOUT_SPREAD, columns=IMPORTANCE_COLUMNS, printed=printed
    )


THRESHOLDS = ("otsu", "li", "triangle", "mean")
REPEATS = (10, 20, 30)
MAPS: tuple[MapName, MapName] = ("importance", "uncertainty")
POISON_AUROC = {
    # by share of poisoned images, from 0.9 down to 0.1
    "importance": (0.56, 0.62, 0.62, 0.59, 0.59, 0.58, 0.58, 0.59, 0.60),
    "uncertainty": (0.85, 0.86, 0.87, 0.86, 0.86, 0.85, 0.84, 0.85, 0.85),
}


def _poison_block(against: str, *, note: str, printed: bool = False) -> TableBlock:
    lines = {f"repeat, {of}": POISON_AUROC[of] for of in MAPS}
    return TableBlock(
        dataset="cifar10",
        encoders=("resnet18",),
        methods=("repeat",),
        columns=tuple(PoisonColumn(against=against, share=share) for share in SHARES),
        printed={"resnet18": lines} if printed else {},
        both_maps=True,
        note=note,
    )


_TABLES = (
    PaperTable(
        name="sanity",
        where="table 1",
        title="Sanity check of uncertainty (eMPRT)",
        blocks=(
            _block("voc", COMPARED, EmprtColumn(), "-0.16 -0.23 -0.17 -0.08 0.48", "-0.10 -0.10 -0.19 -0.07 0.13"),
            _block("coco", COMPARED, EmprtColumn(), "-0.16 -0.21 -0.18 -0.08 0.44", "-0.11 -0.11 -0.19 -0.08 0.13"),
        ),
    ),
    PaperTable(
        name="ood-eurosat",
        where="table 2",
        title="EuroSAT distinguished from photos by uncertainty",
        blocks=(
            _ood_block("voc", COMPARED, "eurosat", "0.797 0.782 0.998 0.000 1.000", "0.002 0.001 0.002 0.000 0.973"),
            _ood_block("coco", COMPARED, "eurosat", "0.969 0.823 0.999 0.000 1.000", "0.001 0.000 0.002 0.000 0.939"),
        ),
    ),
    PaperTable(
        name="complexity",
        where="table 3",
        title="Complexity of uncertainty",
        blocks=(
            _block("voc", COMPARED, COMPLEXITY, "10.52 10.41 10.44 10.82 9.97", "10.46 10.46 10.49 10.82 9.99"),
            _block("coco", COMPARED, COMPLEXITY, "10.45 10.35 10.37 10.75 9.91", "10.40 10.40 10.42 10.74 9.94"),
        ),
    ),
    PaperTable(
        name="kernel-shap-ood",
        where="table 4",
        title="EuroSAT distinguished from photos, REPEAT over two bases",
        blocks=(
            _ood_block("voc", BASES, "eurosat", "0.999 1.000", "0.999 0.973"),
            _ood_block("coco", BASES, "eurosat", "1.000 1.000", "1.000 0.939"),
        ),
    ),
    PaperTable(
        name="kernel-shap-complexity",
        where="table 5",
        title="Complexity of uncertainty, REPEAT over two bases",
        blocks=(
            _block("voc", BASES, COMPLEXITY, "10.40 9.97", "10.36 9.99"),
            _block("coco", BASES, COMPLEXITY, "10.28 9.91", "10.28 9.94"),
        ),
    ),
    PaperTable(
        name="thresholds",
        where="appendix B, table 1",
        title="Importance by threshold: localisation, complexity, robustness",
        blocks=(
            TableBlock(
                dataset="voc",
                encoders=("alexnet",),
                methods=tuple(f"repeat:threshold={name}" for name in THRESHOLDS),
                columns=IMPORTANCE_COLUMNS,
                printed={
                    "alexnet": {
                        "repeat:threshold=otsu": (0.708, 10.101, 0.363),
                        "repeat:threshold=li": (0.704, 9.986, 0.213),
                        "repeat:threshold=triangle": (0.704, 9.691, 0.216),
                        "repeat:threshold=mean": (0.706, 10.076, 0.211),
                    }
                },
                note="The paper's rows of Otsu and triangle are exchanged, as in its authors' notebook.",
            ),
        ),
    ),
    PaperTable(
        name="repeats",
        where="appendix B, table 2",
        title="Importance by number of repeats: localisation, complexity, robustness",
        blocks=(
            TableBlock(
                dataset="voc",
                encoders=("alexnet",),
                methods=tuple(f"repeat:repeats={count}" for count in REPEATS),
                columns=IMPORTANCE_COLUMNS,
                printed={
                    "alexnet": {
                        f"repeat:repeats={count}": (0.70, 10.10, robust)
                        for count, robust in zip(REPEATS, (0.21, 0.14, 0.12), strict=True)
                    }
                },
            ),
        ),
    ),
    PaperTable(
        name="deviations",
        where="appendix B, table 3",
        title="Complexity of uncertainty over three runs",
        blocks=tuple(
            TableBlock(
                dataset=dataset,
                encoders=BOTH,
                methods=("relax", "repeat"),
                columns=(RunsColumn(column=COMPLEXITY, runs=3),),
                printed=_printed(("relax", "repeat"), resnet50, vit),
                note=f"The paper's deviations, RELAX and REPEAT: {deviations}.",
            )
            for dataset, resnet50, vit, deviations in (
                ("voc", "10.82 9.97", "10.82 9.99", "8.9e-06 and 4.7e-04 (ResNet50), 9.0e-06 and 1.3e-03 (ViT)"),
                ("coco", "10.75 9.91", "10.74 9.94", "7.2e-06 and 4.4e-04 (ResNet50), 7.5e-06 and 9.8e-04 (ViT)"),
            )
        ),
    ),
    PaperTable(
        name="ood-fashionmnist",
        where="appendix B, table 4",
        title="FashionMNIST distinguished from photos by uncertainty",
        blocks=(
            _ood_block(
                "voc", COMPARED, "fashionmnist", "0.000 0.146 0.996 0.000 0.999", "0.001 0.002 0.016 0.000 0.001"
            ),
            _ood_block(
                "coco", COMPARED, "fashionmnist", "0.000 0.068 1.000 0.000 1.000", "0.000 0.001 0.019 0.009 0.001"
            ),
        ),
    ),
    PaperTable(
        name="explanations-coco",
        where="appendix B, table 5",
        title="Importance on MS-COCO: localisation, complexity, robustness",
        blocks=(
            _importance_block(
                "coco",
                "0.47 10.37 0.71 0.29 10.10 1.51 0.67 9.96 0.15 0.52 10.23 0.52 0.71 10.75 0.01 0.71 10.10 0.22",
                "0.34 10.18 0.51 0.29 10.29 1.54 0.34 10.18 0.51 0.41 10.14 0.24 0.71 10.75 0.01 0.71 10.06 0.22",
            ),
        ),
    ),
    PaperTable(
        name="explanations-voc",
        where="appendix B, table 6",
        title="Importance on PASCAL VOC: localisation, complexity, robustness",
        blocks=(
            _importance_block(
                "voc",
                "0.62 10.44 0.73 0.29 10.09 1.50 0.86 10.02 0.15 0.67 10.29 0.52 0.86 10.82 0.01 0.86 10.17 0.22",
                "0.47 10.24 0.54 0.44 10.36 1.58 0.47 10.24 0.54 0.55 10.20 0.25 0.85 10.82 0.01 0.85 10.12 0.21",
            ),
        ),
    ),
    PaperTable(
        name="poison",
        where="appendix B, table 7",
        title="Poisoned images detected, by their share",
        blocks=(
            _poison_block(
                "cifar10+cp", note="The paper's own poison, contrastive poisoning (He et al. 2023).", printed=True
            ),
            _poison_block("cifar10+tap", note="Not the paper's: TAP (Fowl et al. 2021)."),
            _poison_block("cifar10+ar", note="Not the paper's: autoregressive (Sandoval-Segura et al. 2022)."),
            _poison_block("cifar10+separable", note="Not the paper's: linearly separable (Yu et al. 2022)."),
        ),
    ),
)
TABLES = {table.name: table for table in _TABLES}
"""The tables by name."""
