"""Match two images: encode masked copies of both, and explain their similarity from all pairs of the copies.

    P + Q + 2 encoder calls  →  P·Q similarities  S_pq = κ(f(A ⊙ m_p), f(B ⊙ m'_q))

`methods/correspondence.py` finds from S which part of A goes with which part of B. Which pixels of A make it similar to
B is what REPEAT says of the similarities κ(f(A ⊙ m_p), f(B)), for which no further encoder calls are needed; likewise
for the pixels of B. The masks of an image are those with which REPEAT explains it with the same seed and budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from repeat_xai.data.images import ImageProtocol
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.engine.scheduler import Estimate, Progress, replay, run_estimates
from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.methods.correspondence import correspondence, pair_similarities
from repeat_xai.methods.explain_pictures import one_image
from repeat_xai.methods.provenance import MethodMaps, explanations
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.seeds import fold
from repeat_xai.types import Answer, Encoder, Explanation, Image, Task, expect_encoder, only_result, result_of
from repeat_xai.types.match import Match

if TYPE_CHECKING:
    from jaxtyping import Float

MAX_MASKS = 4096
"""Most masks of an image, since every masked copy of A is compared with every one of B."""
MAX_CELLS = 31
"""Most cells per side, of which two blocks of masks are as many."""


class MaskedCodes(NamedTuple):
    """An image's masks, and the codes of the image and of its masked copies, on the host."""

    draws: Draws
    code: Float[Tensor, " dim"]
    codes: Float[Tensor, "masks dim"]


def match(
    encoder: Encoder,
    a: object,
    b: object,
    *,
    method: Repeat = Repeat(budget=512),
    seed: int = 0,
    protocol: ImageProtocol = "encoder",
    progress: Progress | None = None,
) -> Match:
    """Find out why an encoder finds two pictures similar, and which part of one goes with which part of the other.

    Args:
        encoder: The encoder, made by `load_encoder`.
        a: A path, a Pillow image, an array, a tensor or an `Image`, as for `explain`.
        b: The other picture.
        method: REPEAT over RELAX with a given budget, which is the number of masks of each picture, rounded up to whole
            blocks. Its grid divides the pictures into parts, and its similarity compares codes.
        seed: The same seed gives the same result. The match of `b` and `a` is that of `a` and `b`, turned round.
        protocol: As for `explain`.
        progress: Called with the similarities of masked copies to their own image as they are measured.
    """
    expect_matching(method)
    expect_encoder(encoder)
    images = tuple(one_image(encoder, picture, protocol) for picture in (a, b))
    return match_images(encoder, *images, method=method, seed=seed, progress=progress)


def expect_matching(method: object) -> None:
    """Refuse a method that does not say which masks a match is to be made from."""
    if not isinstance(method, Repeat) or not method.is_fast or method.budget == "auto":
        raise ConfigurationError("a match needs REPEAT's fast estimator over RELAX and a budget, as Repeat(budget=512)")
    at_least("masks of an image of a match", method.fast_estimator.calls - 1, 1, MAX_MASKS)


def match_images(
    encoder: Encoder, a: Image, b: Image, *, method: Repeat, seed: int, progress: Progress | None = None
) -> Match:
    """Match two images that are ready for the encoder."""
    assert isinstance(method.base, Relax)
    if a.pixels.shape != b.pixels.shape:
        sizes = ["×".join(map(str, image.pixels.shape[1:])) for image in (a, b)]
        raise ConfigurationError(f"images of {sizes[0]} and {sizes[1]} pixels cannot be matched; prepare both alike")
    seed_a, seed_b = seeds_of(a, b, seed=seed)
    b = replace(b)  # an object of its own, also where an image is matched with itself

    def estimate(basis: Basis, image: Image) -> Estimate[MaskedCodes]:
        return masked_codes(basis, image, method=method, seed=seed_b if image is b else seed_a)

    plan = method.base.plan._replace(calls=method.calls or 0, codes=True)
    answers = []
    for answer in run_estimates(encoder, (Task(a), Task(b)), estimate, plan, progress):
        result_of(answer)  # the first image's error is raised before the second image is encoded
        answers.append(answer)
    of_a, of_b = map(result_of, answers)

    cells, basis = [method.base.grid.cells] * 4, basis_on_host(method.base, a)
    similarities = pair_similarities(method.base.similarity, of_a.codes, of_b.codes)
    effect, error = (
        values.float().view(cells) for values in correspondence(basis, of_a.draws, of_b.draws, similarities)
    )
    return Match(
        a=explained_toward(encoder, answers[0], b, of_b.code, method=method, seed=seed_a),
        b=explained_toward(encoder, answers[1], a, of_a.code, method=method, seed=seed_b),
        effect=effect,
        error=error,
    )


def basis_on_host(relax: Relax, image: Image) -> Basis:
    """Return the basis of an image's masks on the host, where everything but the codes is computed."""
    _, height, width = image.pixels.shape
    return Basis.of(relax.grid, height, width, torch.device("cpu"))


def seeds_of(a: Image, b: Image, *, seed: int) -> tuple[int, int]:
    """Return the seeds of the masks of both images, which must be independent also where the images are the same.

    Masks depend on the seed and on the content of an image. So the seed is the same for images that differ, which makes
    the match of B and A that of A and B, turned round.
    """
    return seed, fold(seed, "twin") if a.photo.digest == b.photo.digest else seed


def masked_codes(basis: Basis, image: Image, *, method: Repeat, seed: int) -> Estimate[MaskedCodes]:
    """Ask for the codes under the masks with which the method explains the image."""
    draws = next(method.estimate(basis, image, seed=seed))
    assert isinstance(draws, Draws)
    codes = yield draws
    codes = yield codes  # to the host
    return MaskedCodes(Draws(draws.grids.cpu(), draws.shifts.cpu()), codes[0], codes[1:])


def explained_toward(
    encoder: Encoder, answer: Answer[MaskedCodes], other: Image, code: Tensor, *, method: Repeat, seed: int
) -> Explanation:
    """Return which pixels make the image that is answered similar to the other image, whose code is given."""

    def maps(image: Image, masked: MaskedCodes) -> MethodMaps:
        assert isinstance(method.base, Relax)
        basis = basis_on_host(method.base, image)
        similarity = method.base.similarity(code, masked.codes).double()
        result = replay(method.estimate(basis, image, seed=seed), similarity)
        target = {"name": other.photo.name, "sha256": other.photo.digest}
        return result._replace(record={**result.record, "target": target})

    return only_result(explanations(iter((answer.with_result(maps),)), method, encoder, seed=seed))
