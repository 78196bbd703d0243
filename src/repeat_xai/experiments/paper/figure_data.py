"""The data that each figure of the paper shows, and the function that computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from repeat_xai.data.open_dataset import dataset_title
from repeat_xai.engine.mask_bounds import similarity_range as measure_similarities
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import Estimate, run_estimates
from repeat_xai.errors import EncoderError
from repeat_xai.experiments.paper.figure_request import FigureRequest, FigureSource
from repeat_xai.experiments.row_scores import scores_of_rows
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.spread import Spread
from repeat_xai.methods.thresholds import THRESHOLDS, cuts
from repeat_xai.methods.votes import indicator
from repeat_xai.metrics.detection import Mixture, Roc, mixture, roc
from repeat_xai.seeds import fold
from repeat_xai.types import Explanation, Image, Photo, Task, only_result

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from repeat_xai.types import Map

    ImageScores = Float[Tensor, " images"]

MAPS = ("importance", "uncertainty")


class MarkedPixel(NamedTuple):
    """A pixel that a figure points at, and the text that explains it."""

    letter: str
    row: int
    column: int
    text: str


class RelaxBesideRepeat(NamedTuple):
    """One photo by RELAX and by REPEAT, with the pixel that each is least sure of."""

    relax: Explanation
    repeat: Explanation
    marks: tuple[MarkedPixel, ...]
    source: FigureSource


class RepeatSteps(NamedTuple):
    """Every step of REPEAT with binary votes on one photo: the map, cut and votes of each run, and their mean."""

    photo: Photo
    maps: Float[Tensor, "repeats height width"]
    cuts: Float[Tensor, " repeats"]
    votes: Bool[Tensor, "repeats height width"]
    importance: Map
    uncertainty: Map
    source: FigureSource


class ThresholdCut(NamedTuple):
    """A threshold by its name, the importance at which it cuts, and the share of pixels that reach it."""

    threshold: str
    cut: float
    share: float


class CutMap(NamedTuple):
    """The importance of one photo, and where every threshold cuts it."""

    photo: Photo
    importance: Map
    cuts: Sequence[ThresholdCut]
    source: FigureSource


class ExplanationGrid(NamedTuple):
    """Several photos, each explained by the same methods."""

    rows: Sequence[Sequence[Explanation]]
    source: FigureSource


class PoisonedPair(NamedTuple):
    """One image, clean and poisoned, explained under the same masks."""

    clean: Explanation
    poisoned: Explanation
    source: FigureSource


class MethodScores(NamedTuple):
    """A method by the name of its class, the uncertainty of each image by dataset, and the AUROC between the two."""

    method: str
    scores: Mapping[str, ImageScores]
    area: float


class OodScores(NamedTuple):
    """The uncertainty of photos and of another dataset's images, by several methods."""

    methods: Sequence[MethodScores]
    source: FigureSource


class MaskedSimilarities(NamedTuple):
    """Similarities between images and their masked copies, with the least and the largest."""

    similarities: Float[Tensor, "images masks"]
    low: float
    high: float
    source: FigureSource


class PoisonScores(NamedTuple):
    """Scores of clean and of poisoned images, the mixture fitted to both together, and how well it separates them.

    Each mapping is by map: importance and uncertainty.
    """

    scores: Mapping[str, Mapping[str, ImageScores]]
    mixtures: Mapping[str, Mixture]
    curves: Mapping[str, Roc]
    source: FigureSource


FigureData = (
    RelaxBesideRepeat
    | RepeatSteps
    | CutMap
    | ExplanationGrid
    | PoisonedPair
    | OodScores
    | MaskedSimilarities
    | PoisonScores
)


def motivation(request: FigureRequest) -> RelaxBesideRepeat:
    """Explain one image by RELAX and by REPEAT, and find the pixel that each is least sure of."""
    image = request.first_image()
    relax, repeat = (request.explain(method, image) for method in request.figure.methods)
    assert repeat.vote_share is not None
    marks = []
    for letter, reason, explanation in (
        ("a", "the score varies most", relax),
        ("b", "the repeats disagree most", repeat),
    ):
        uncertainty = explanation.required_uncertainty
        row, column = divmod(int(uncertainty.argmax()), uncertainty.shape[1])
        spread, share = relax.required_uncertainty[row, column].item(), repeat.vote_share[row, column].item()
        votes = f"called important by {100 * share:.0f} % of the repeats"
        marks.append(MarkedPixel(letter, row, column, f"{reason}: RELAX's uncertainty {spread:.2g}, {votes}"))
    return RelaxBesideRepeat(relax, repeat, tuple(marks), request.source)


def overview(request: FigureRequest) -> RepeatSteps:
    """Run REPEAT with binary votes on one image, and keep every step."""
    image, repeat = request.first_image(), request.repeat
    maps = _relax_maps(request, image, repeat.repeats)
    votes = indicator(maps, repeat.threshold)
    share = votes.double().mean(0)
    return RepeatSteps(
        image.photo, maps, cuts(maps, repeat.threshold), votes, share, share * (1 - share), request.source
    )


def _relax_maps(request: FigureRequest, image: Image, runs: int) -> Float[Tensor, "runs height width"]:
    """Return RELAX's map of each run: the same maps that the exact estimator of REPEAT turns into votes."""
    relax = request.preset.relax

    def estimate(basis: Basis, image: Image) -> Estimate[Tensor]:
        maps = []
        for run in range(runs):
            # the exact estimator folds the same words into its seeds; other words would give other masks
            moments = yield from relax.moments(basis, image, seed=fold(request.seed, "repeat", run))
            maps.append(relax.mean_similarity(moments))
        return (yield torch.stack(maps))

    plan = relax.plan._replace(calls=runs * relax.masks + 1)
    return only_result(run_estimates(request.encoder, (Task(image),), estimate, plan))


def threshold_example(request: FigureRequest) -> CutMap:
    """Cut RELAX's map of one image by every threshold, each by the name that the preset gives it."""
    image = request.first_image()
    importance = _relax_maps(request, image, 1)[0]
    cut_maps = []
    for name in THRESHOLDS:
        method = request.preset.method(f"repeat:threshold={name}")
        assert isinstance(method, Repeat)
        cut = cuts(importance[None], method.threshold).item()
        cut_maps.append(ThresholdCut(name, cut, indicator(importance[None], method.threshold).double().mean().item()))
    source = request.source._replace(budget=f"{request.preset.relax.masks} masks")
    return CutMap(image.photo, importance, cut_maps, source)


def qualitative(request: FigureRequest) -> ExplanationGrid:
    """Explain a few images by every method of the figure."""
    images = list(request.readable_images())
    rows = [[request.explain(method, image) for method in request.figure.methods] for image in images]
    return ExplanationGrid(rows, request.source)


def poisoned_example(request: FigureRequest) -> PoisonedPair:
    """Explain one image clean and poisoned, under the same masks, so that nothing but the poison differs."""
    other = request.other_dataset()
    number = request.numbers(other)[0]
    clean, poisoned = (request.image(dataset, number) for dataset in (request.figure.dataset, other))
    # masks are drawn from the photo's digest: under its own, the poisoned image would be explained with other masks
    poisoned = replace(poisoned, photo=replace(poisoned.photo, digest=clean.photo.digest))
    (method,) = request.figure.methods
    source = request.source._replace(dataset=request.poison_title(other))
    return PoisonedPair(request.explain(method, clean), request.explain(method, poisoned), source)


def ood_histograms(request: FigureRequest) -> OodScores:
    """Collect the mean uncertainty of the images of two datasets by every method, and how well it separates them."""
    other = request.other_dataset()
    methods = []
    for name in request.figure.methods:
        known, unknown = (
            _mean_scores(request, dataset, name, request.numbers(dataset), ("uncertainty",))["uncertainty"]
            for dataset in (request.figure.dataset, other)
        )
        by_dataset = {dataset_title(request.figure.dataset): known, dataset_title(other): unknown}
        methods.append(MethodScores(_class_name(request.preset.method(name)), by_dataset, roc(known, unknown).area))
    return OodScores(methods, request.source)


def similarity_range(request: FigureRequest) -> MaskedSimilarities:
    """Measure how similar images stay to themselves under the preset's masks."""
    relax = request.preset.relax
    measured = measure_similarities(
        request.encoder,
        request.readable_images(),
        masks=relax.masks,
        grid=relax.grid,
        similarity=relax.similarity,
        chunk=relax.chunk,
        seed=request.seed,
    )
    source = request.source._replace(budget="")
    return MaskedSimilarities(measured.similarities, measured.low, measured.high, source)


def poison_histograms(request: FigureRequest) -> PoisonScores:
    """Poison half of the images, leave the other half clean, and fit a mixture to all without saying which is which."""
    other = request.other_dataset()
    numbers = request.numbers(other)
    half = len(numbers) // 2
    (method,) = request.figure.methods
    poisoned = _mean_scores(request, other, method, numbers[:half], MAPS)
    clean = _mean_scores(request, request.figure.dataset, method, numbers[half:], MAPS)
    mixtures = {name: mixture(torch.cat((clean[name], poisoned[name])), seed=request.seed) for name in MAPS}
    curves = {name: roc(mixtures[name].log_odds(clean[name]), mixtures[name].log_odds(poisoned[name])) for name in MAPS}
    groups = {name: {"clean": clean[name], "poisoned": poisoned[name]} for name in MAPS}
    return PoisonScores(groups, mixtures, curves, request.source._replace(dataset=request.poison_title(other)))


FIGURE_DATA: dict[str, Callable[[FigureRequest], FigureData]] = {
    f.__name__.replace("_", "-"): f
    for f in (
        motivation,
        overview,
        threshold_example,
        qualitative,
        ood_histograms,
        similarity_range,
        poison_histograms,
        poisoned_example,
    )
}
"""The function that computes what a figure shows, by the name of the figure."""


def _mean_scores(
    request: FigureRequest, dataset: str, method: str, numbers: Sequence[int], maps: Sequence[str]
) -> dict[str, ImageScores]:
    """Return by map the mean of each image, for the images that could be explained."""
    rows = request.scored_rows(dataset, method, numbers)
    explained = [row for row in rows if row.failure is None]
    if not explained:
        reason = next((row.failure for row in rows), "no image was given")
        raise EncoderError(f"{request.figure.name}: nothing of {dataset} could be explained ({reason})")
    return {name: scores_of_rows(explained, f"mean.{name}") for name in maps}


def _class_name(method: Method) -> str:
    """Return the name of the class whose importance a method shows."""
    return type(method.base if isinstance(method, Spread) else method).__name__
