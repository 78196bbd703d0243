"""What a method is, what a base method is, and how a base alone becomes a method.

A method explains images: it returns an `Explanation` with importance and, where it has one, uncertainty. A base returns
one importance map; REPEAT and `Spread` run it several times to find out how certain that map is. A method that is
defined by its `answers` alone takes the functions `explain_image` and `explain_images` as its `__call__` and `stream`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

from repeat_xai.encoders.calls import metering
from repeat_xai.engine.targets import Contrast, as_codes
from repeat_xai.errors import ConfigurationError, EncoderError, RepeatError
from repeat_xai.methods.provenance import MethodMaps, explanations
from repeat_xai.types import Answer, Encoder, Explanation, Image, Task, expect, expect_encoder, only_result, result_of
from repeat_xai.types.text import Text

if TYPE_CHECKING:
    from repeat_xai.engine.scheduler import Progress
    from repeat_xai.types import Map


@runtime_checkable
class Base(Protocol):
    """What REPEAT and `Spread` need of a base method: one importance map for each seed.

    A base may also say of itself, as attributes, whether it is `stochastic` and needs `gradients`, how many encoder
    `calls` it makes for an image, and its `title` and `citation`.
    """

    def importance(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """Return how much each pixel matters."""
        ...


@runtime_checkable
class Answering(Protocol):
    """What `explain_image` and `explain_images` need of a method."""

    def answers(
        self, encoder: Encoder, tasks: Iterable[Task], *, seed: int, progress: Progress | None = None
    ) -> Iterator[Answer[Explanation]]:
        """Yield an answer for each task, in order; an image that cannot be explained is answered with its error.

        `progress` is called with the similarities of masked copies as they are measured, by methods that have any.
        """
        ...


@runtime_checkable
class Method(Answering, Protocol):
    """A way to explain images."""

    @property
    def calls(self) -> int | None:
        """Encoder calls for an image, at most; None where that is not known beforehand."""
        ...

    def __call__(self, encoder: Encoder, image: Image, *, seed: int = 0) -> Explanation:
        """Explain one image."""
        ...

    def stream(self, encoder: Encoder, images: Iterable[Image], *, seed: int = 0) -> Iterator[Explanation]:
        """Explain many images, in order."""
        ...


def explain_image(self: Answering, encoder: Encoder, image: Image, *, seed: int = 0) -> Explanation:
    """Explain one image. The same seed gives the same maps."""
    return only_result(self.answers(encoder, (Task(image),), seed=seed))


def explain_images(
    self: Answering, encoder: Encoder, images: Iterable[Image], *, seed: int = 0
) -> Iterator[Explanation]:
    """Explain many images, in order. On a GPU several are under way at once, so that the encoder never waits."""
    for answer in self.answers(encoder, map(Task, images), seed=seed):
        yield result_of(answer)


def answers_of_base(
    self: Base, encoder: Encoder, tasks: Iterable[Task], *, seed: int, progress: Progress | None = None
) -> Iterator[Answer[Explanation]]:
    """Yield for each task the importance map of one run of a base; its uncertainty is unknown."""
    del progress  # no similarities are measured
    expect_encoder(encoder)
    base = with_codes(self, encoder)
    run = lambda image: MethodMaps(importance_of(base, encoder, image, seed=seed))  # noqa: E731
    return explanations(answer_each(encoder, tasks, run), self, encoder, seed=seed)


def answer_each(
    encoder: Encoder, tasks: Iterable[Task], explain: Callable[[Image], MethodMaps]
) -> Iterator[Answer[MethodMaps]]:
    """Yield the answers to tasks that are done one after the other; an image that fails does so alone."""
    expect_encoder(encoder)
    for task in tasks:
        if task.image is None or isinstance(task.image, RepeatError):
            yield Answer(task=task, result=task.image)
            continue
        expect(encoder, task.image)
        with metering() as meter:
            try:
                maps = explain(task.image)
            except EncoderError as error:
                yield Answer(task=task, result=error)
                continue
        yield Answer(task=task, result=maps, calls=meter.calls, seconds=meter.seconds)


def expect_base(base: object) -> None:
    """Refuse what cannot be the base of another method."""
    if isinstance(base, type) or not isinstance(base, Base):
        raise ConfigurationError(f"base must be a method with an importance map, such as Saliency(), not {base!r}")


def with_codes(base: Base, encoder: Encoder) -> Base:
    """Return the base with its target as codes, so that many images are explained and the target is encoded once."""
    target = getattr(base, "target", None)
    if isinstance(target, Image | tuple | Text | Contrast) and is_dataclass(base):
        return replace(base, target=as_codes(encoder, target))
    return base


def is_deterministic(base: object) -> bool:
    """Return whether the base says of itself that its map is the same whatever the seed."""
    return getattr(base, "stochastic", True) is False


def name_of(base: object) -> str:
    """Return the name by which errors call a base."""
    return str(getattr(base, "name", None) or type(base).__name__)


def importance_of(base: Base, encoder: Encoder, image: Image, *, seed: int) -> Map:
    """Return the importance map of a base, in float64 on the host; refuse what is no finite map of the image's size."""
    importance, name = base.importance(encoder, image, seed=seed), name_of(base)
    if not isinstance(importance, Tensor) or importance.shape != image.pixels.shape[1:]:
        shape = list(importance.shape) if isinstance(importance, Tensor) else type(importance).__name__
        raise ConfigurationError(f"{name} gave {shape}, not a map of {list(image.pixels.shape[1:])}")
    if not importance.isfinite().all():
        raise EncoderError(f"{image.photo.name}: {name} gave a map with NaN or infinite values")
    return importance.detach().double().cpu()
