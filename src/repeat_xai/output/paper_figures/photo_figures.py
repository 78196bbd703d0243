"""Figures of photos and their maps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from matplotlib.figure import Figure
from torch import Tensor

from repeat_xai.data.open_dataset import dataset_title
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import Estimate, run_estimates
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.methods.votes import indicator
from repeat_xai.output.figures.captions import short_name
from repeat_xai.output.figures.methods_figure import examples
from repeat_xai.output.figures.motivation_figure import Mark
from repeat_xai.output.figures.motivation_figure import motivation as motivation_figure
from repeat_xai.output.figures.overview_figure import overview as overview_figure
from repeat_xai.output.figures.poison_figure import poisoned_pair
from repeat_xai.output.figures.threshold_figure import Cut, cuts
from repeat_xai.output.paper_figures.figure_request import Asked
from repeat_xai.seeds import fold
from repeat_xai.types import Explanation, Image, Task, only_result

if TYPE_CHECKING:
    from jaxtyping import Float

SCALES = "each map on its own scale, REPEAT's from 0 to 1 and from 0 to ¼"


def motivation(asked: Asked) -> Figure:
    """RELAX beside REPEAT, with the pixel that each is least sure of."""
    image = asked.first()
    relax, repeat = (asked.explained(method, image) for method in asked.entry.methods)
    least_sure = (("a", "the score varies most", relax), ("b", "the repeats disagree most", repeat))
    marks = tuple(_mark(letter, words, of, relax, repeat) for letter, words, of in least_sure)
    return motivation_figure(relax, repeat, marks=marks, note=asked.note(_of(asked, image)))


def _mark(letter: str, words: str, of: Explanation, relax: Explanation, repeat: Explanation) -> Mark:
    """The most uncertain pixel of one explanation, and what both say of it."""
    assert repeat.vote_share is not None
    row, column = divmod(int(of.uncertainty.argmax()), of.uncertainty.shape[1])
    spread, share = relax.uncertainty[row, column].item(), repeat.vote_share[row, column].item()
    votes = f"called important by {100 * share:.0f} % of the repeats"
    return Mark(letter, row, column, f"{words}: RELAX's uncertainty {spread:.2g}, {votes}")


def overview(asked: Asked) -> Figure:
    """Every step of REPEAT with binary votes, on one image."""
    image, repeat = asked.first(), asked.repeat
    maps = _runs(asked, image, repeat.repeats)
    votes = indicator(maps, repeat.threshold)
    share = votes.double().mean(0)
    return overview_figure(
        image.photo,
        maps,
        THRESHOLDS[repeat.threshold](maps),
        votes,
        share,
        share * (1 - share),
        note=asked.note(_of(asked, image)),
    )


def _runs(asked: Asked, image: Image, runs: int) -> Float[Tensor, "runs height width"]:
    """RELAX's maps, the same that the exact estimator of REPEAT counts."""
    relax = asked.preset.relax

    def estimate(basis: Basis, image: Image) -> Estimate[Tensor]:
        maps = []
        for run in range(runs):
            moments = yield from relax.moments(basis, image, seed=fold(asked.seed, "repeat", run))
            maps.append(relax.mean_similarity(moments))
        return (yield torch.stack(maps))

    plan = relax.plan._replace(calls=runs * relax.masks + 1)
    return only_result(run_estimates(asked.encoder, (Task(image),), estimate, plan))


def threshold_example(asked: Asked) -> Figure:
    """RELAX's map of one image cut by every threshold, by the names that the preset gives them."""
    image = asked.first()
    importance = _runs(asked, image, 1)[0]
    found = []
    for name in THRESHOLDS:
        method = asked.preset.method(f"repeat:threshold={name}")
        assert isinstance(method, Repeat)
        at = THRESHOLDS[method.threshold](importance[None]).item()
        found.append(Cut(name, at, indicator(importance[None], method.threshold).double().mean().item()))
    note = "  ·  ".join((_of(asked, image), asked.network.label, f"{asked.preset.relax.masks} masks"))
    return cuts(image.photo, importance, found, note=note)


def qualitative(asked: Asked) -> Figure:
    """Some images by every method."""
    images = list(asked.every())
    photos = [[asked.explained(method, image) for method in asked.entry.methods] for image in images]
    return examples(photos, note=f"{asked.note(dataset_title(asked.entry.dataset))}  ·  {SCALES}")


def poisoned_example(asked: Asked) -> Figure:
    """One image clean and poisoned, under the same masks, so that nothing but the poison differs."""
    against = asked.against()
    number = asked.numbers(against)[0]
    clean, poisoned = (asked.image(dataset, number) for dataset in (asked.entry.dataset, against))
    poisoned = replace(poisoned, photo=replace(poisoned.photo, digest=clean.photo.digest))
    pair = [asked.explained(method, image) for method in asked.entry.methods for image in (clean, poisoned)]
    return poisoned_pair(*pair, note=asked.note(f"{asked.poison(against)}, image {clean.photo.name}"))


def _of(asked: Asked, image: Image) -> str:
    """Which photo of which dataset."""
    return f"{dataset_title(asked.entry.dataset)}, {short_name(image.photo, 30)}"
