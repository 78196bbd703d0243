"""One image's way through a method: the task that goes in, and the answer that comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, final

from repeat_xai.errors import RepeatError
from repeat_xai.types.images import Image

S = TypeVar("S")
T = TypeVar("T")


class Task(NamedTuple):
    """An image to be explained, with a tag by which the caller knows its answer again."""

    image: Image | RepeatError | None
    """An error, or None where nothing is to be explained, passes through and is answered in its turn."""
    tag: Any = None


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Answer(Generic[T]):
    """The result for one task, and what it cost."""

    task: Task
    result: T | RepeatError | None
    """An error where the image could not be explained; None where there was no image."""
    calls: int = 0
    """Images that went through the encoder."""
    seconds: float = 0.0
    """Time since the previous answer, without the time that made the encoder ready."""
    ran: Mapping[str, Any] = field(default_factory=dict)
    """The runtime and the precision by which the encoder was run."""

    def with_result(self, make: Callable[[Image, T], S]) -> Answer[S]:
        """Return the same answer with something made of the image and its result, if there is a result."""
        result: S | RepeatError | None = None
        if isinstance(self.result, RepeatError):
            result = self.result
        elif self.result is not None:
            assert isinstance(self.task.image, Image)
            result = make(self.task.image, self.result)
        return Answer(task=self.task, result=result, calls=self.calls, seconds=self.seconds, ran=self.ran)


def result_of(answer: Answer[T]) -> T:
    """Return the result of an answer, or raise the error that stands in its place."""
    if isinstance(answer.result, RepeatError):
        raise answer.result
    assert answer.result is not None, "nothing was to be explained"
    return answer.result


def only_result(answers: Iterable[Answer[T]]) -> T:
    """Return the result of the one answer there is, or raise its error."""
    (answer,) = answers
    return result_of(answer)
