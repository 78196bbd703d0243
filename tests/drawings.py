"""Figures of the paper, made from few images with a tiny encoder."""

from dataclasses import replace

import numpy as np

import repeat_xai as rx
from repeat_xai.experiments.paper.figure_data import FIGURE_DATA
from repeat_xai.experiments.paper.figure_request import FigureRequest
from repeat_xai.experiments.paper.presets import Preset
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.worker import Worker
from repeat_xai.output.paper_figures import draw_figure

RELAX = rx.Relax(masks=8)
PRESET = Preset(name="tiny", relax=RELAX, repeats=4, passes=2)
TINY = EncoderSpec(name="torchvision:tiny")


def paper_figure(name, root):
    """Return the paper's figure with the folders of the tests for its datasets, and without its slower methods."""
    folders = {"voc": str(root / "photos"), "eurosat": str(root / "fields")}
    figure = FIGURES[name]
    against = tuple(folders.get(other, other) for other in figure.against)
    methods = tuple(method for method in figure.methods if method in ("saliency", "relax", "repeat"))
    return replace(figure, dataset=folders.get(figure.dataset, figure.dataset), against=against, methods=methods)


def figure_request(name, root, *, images=2, preset=PRESET, rows=None, seed=0):
    return FigureRequest(
        figure=paper_figure(name, root),
        encoder_spec=TINY,
        preset=preset,
        worker=Worker(device="cpu", root=root),
        images=images,
        seed=seed,
        rows=rows,
    )


def drawn_figure(name, root, **options):
    """Compute and draw a figure of the paper."""
    figure = draw_figure(FIGURE_DATA[name](figure_request(name, root, **options)))
    figure.draw_without_rendering()
    return figure


def texts_in(figure):
    titles = [legend.get_title() for legend in figure.legends]
    return [text.get_text() for text in (*figure.texts, *titles)] + [figure.get_suptitle()]


def maps_in(figure):
    """Return the arrays that are drawn as maps, over the faint photo."""
    return [np.asarray(axes.images[-1].get_array()) for axes in figure.axes if len(axes.images) == 2]


def rows_with(score):
    """Return a source of rows, and the list of the settings and numbers that it is asked for.

    `score` returns the score of an image by setting and number, or a text: the reason why it failed.
    """
    requests = []

    def rows(setting, numbers):
        requests.append((setting, list(numbers)))
        for number in numbers:
            value = score(setting, number)
            failure = value if isinstance(value, str) else None
            yield Row(
                key=str(number),
                dataset=setting.dataset,
                image=str(number),
                encoder="tiny",
                method="",
                measure="Maps",
                seed=0,
                scores={} if failure else {"mean.importance": -value, "mean.uncertainty": value},
                failure=failure,
                setting="",
            )

    return rows, requests
