"""Figures of the paper, of few images and by a tiny network."""

from dataclasses import replace

import numpy as np

import repeat_xai as rx
from repeat_xai.experiments.paper.presets import Preset
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.settings import Network
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.worker import Worker
from repeat_xai.output.paper_figures import DRAWINGS
from repeat_xai.output.paper_figures.figure_request import Asked

RELAX = rx.Relax(masks=8)
PRESET = Preset(name="tiny", relax=RELAX, repeats=4, passes=2)
NETWORK = Network(name="torchvision:tiny")


def entry(name, root):
    """The entry, of the folders at hand and without the slower methods."""
    folders = {"voc": str(root / "photos"), "eurosat": str(root / "fields")}
    found = FIGURES[name]
    against = tuple(folders.get(other, other) for other in found.against)
    methods = tuple(method for method in found.methods if method in ("saliency", "relax", "repeat"))
    return replace(found, dataset=folders.get(found.dataset, found.dataset), against=against, methods=methods)


def asked(name, root, *, images=2, preset=PRESET, rows=None, seed=0):
    worker = Worker(device="cpu", root=root)
    return Asked(
        entry=entry(name, root),
        network=NETWORK,
        preset=preset,
        worker=worker,
        images=images,
        seed=seed,
        rows=rows,
    )


def figure(name, root, **options):
    found = DRAWINGS[name](asked(name, root, **options))
    found.draw_without_rendering()
    return found


def said(found):
    titles = [legend.get_title() for legend in found.legends]
    return [text.get_text() for text in (*found.texts, *titles)] + [found.get_suptitle()]


def maps(found):
    """Arrays drawn as maps, over the faint photo."""
    return [np.asarray(axes.images[-1].get_array()) for axes in found.axes if len(axes.images) == 2]


def rows_of(scores):
    """Rows from elsewhere: by dataset and image a number, or why there is none."""
    seen = []

    def rows(setting, numbers):
        seen.append((setting, list(numbers)))
        for number in numbers:
            value = scores(setting, number)
            failure = value if isinstance(value, str) else None
            numbers_of = {} if failure else {"mean.importance": -value, "mean.uncertainty": value}
            yield Row(
                key=str(number),
                dataset=setting.dataset,
                image=str(number),
                encoder="tiny",
                method="",
                measure="Maps",
                seed=0,
                scores=numbers_of,
                failure=failure,
                setting="",
            )

    return rows, seen
