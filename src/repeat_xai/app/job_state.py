"""The state of a job, as users see it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.types import Explanation


class JobState(NamedTuple):
    """How far a job is."""

    message: str = "Waiting to start"
    calls: int = 0
    """Encoder calls made for the current explanation."""
    max_calls: int | None = None
    """Most encoder calls that the current explanation can take, where that is known."""
    explanations: tuple[Explanation, ...] = ()
    is_preview: bool = False
    """Whether the last explanation is a preview, made from the masks so far."""
    notes: tuple[str, ...] = ()
    """Warnings that were raised by this job."""
    end: Literal["done", "failed", "cancelled"] | None = None


def progress_text(method: Method, calls: int) -> str:
    """Return how many encoder calls have been made, and of how many.

    >>> progress_text(Repeat(), 65), progress_text(Repeat(estimator="exact"), 65)
    ('65 of at most 4,097 encoder calls', '65 of 10,001 encoder calls')
    """
    if method.calls is None:
        return f"{calls:,} encoder calls"
    is_limit = isinstance(method, Repeat) and method.finds_budget
    return f"{calls:,} of {'at most ' if is_limit else ''}{max(calls, method.calls):,} encoder calls"
