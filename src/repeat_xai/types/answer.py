"""The classes that carry an image through a method: the task that goes in, and the answer that comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, final

from repeat_xai.errors import RepeatError
from repeat_xai.types.photo import Image

S = TypeVar("S")
T = TypeVar("T")


class Task(NamedTuple):
    """An image to explain, with a tag by which the caller recognises the answer."""

    image: Image | RepeatError | None
    """The image. An error, or None where there is nothing to explain, is passed on to the answer in its turn."""
    tag: Any = None
    """Anything; the answer holds the task and thereby its tag."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Answer(Generic[T]):
    """The result of one task, and what it cost."""

    task: Task
    """The task that is answered."""
    result: T | RepeatError | None
    """The result; an error if the image could not be explained, None if there was no image."""
    calls: int = 0
    """Number of images that went through the encoder, masked copies included."""
    seconds: float = 0.0
    """Time since the previous answer, without the time that it took to prepare the encoder."""
    ran: Mapping[str, Any] = field(default_factory=dict)
    """The runtime and the precision in which the encoder was run."""

    def with_result(self, make: Callable[[Image, T], S]) -> Answer[S]:
        """Return the same answer with `make(image, result)` as its result; an error or None stays as it is."""
        result: S | RepeatError | None = None
        if isinstance(self.result, RepeatError):
            result = self.result
        elif self.result is not None:
            assert isinstance(self.task.image, Image)
            result = make(self.task.image, self.result)
        return Answer(task=self.task, result=result, calls=self.calls, seconds=self.seconds, ran=self.ran)


def result_of(answer: Answer[T]) -> T:
    """Return the result of an answer, or raise its error."""
    if isinstance(answer.result, RepeatError):
        raise answer.result
    assert answer.result is not None, "nothing was to be explained"
    return answer.result


def only_result(answers: Iterable[Answer[T]]) -> T:
    """Return the result of the only answer, or raise its error."""
    (answer,) = answers
    return result_of(answer)
