"""What one user asked for, done on a thread of its own, and how far it is."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, final

from repeat_xai.app.encoder_cache import Shared, Shelf
from repeat_xai.app.job_request import Wanted
from repeat_xai.app.live_preview import explain_with_previews
from repeat_xai.app.photos import Given
from repeat_xai.app.warning_routing import telling
from repeat_xai.errors import RepeatError, reason
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.types import Explanation

PAUSE = 0.2
"""Seconds between two states that are told, and between two tries for a lock."""


class Cancelled(BaseException):
    """The user wants no more of it: no error, so that what handles errors does not handle it."""


class State(NamedTuple):
    """How far a job is."""

    said: str = "Waiting for a place"
    calls: int = 0
    most: int | None = None
    found: tuple[Explanation, ...] = ()
    so_far: bool = False
    """Whether the last one found is yet to get better."""
    notes: tuple[str, ...] = ()
    end: Literal["done", "failed", "cancelled"] | None = None


@final
class Job:
    """A photo explained in one way, or in several to be compared."""

    def __init__(self, wanted: Sequence[Wanted], given: Given, shelf: Shelf) -> None:
        self.wanted, self.given, self.shelf = tuple(wanted), given, shelf
        self.state, self._changed = State(), threading.Condition()
        self._cancelled, self.begun = threading.Event(), False

    def cancel(self) -> None:
        """Stop it before its next batch."""
        self._cancelled.set()
        self._tell(self.state._replace(said="Cancelled", end="cancelled"))

    def states(self) -> Iterator[State]:
        """Begin, and tell how far it is until it ends."""
        self.begun = True
        threading.Thread(target=self._work).start()
        yield (seen := self.state)
        while seen.end is None:
            time.sleep(PAUSE)
            with self._changed:
                while self.state is seen:
                    self._changed.wait()
                seen = self.state
            yield seen

    def _work(self) -> None:
        try:
            done: tuple[Explanation, ...] = ()
            for one in self.wanted:
                with telling(self._note):
                    done = (*done, self._explained(one, done))
                self._tell(self.state._replace(found=done, so_far=False))
            self._tell(self.state._replace(said="Done", end="done"))
        except Cancelled:
            pass
        except RepeatError as error:
            self._tell(self.state._replace(said=str(error), end="failed"))
        except Exception as error:
            traceback.print_exc()
            self._tell(self.state._replace(said=f"this should not have happened: {reason(error)}", end="failed"))

    def _explained(self, one: Wanted, done: tuple[Explanation, ...]) -> Explanation:
        self._expect_wanted()
        self._tell(self.state._replace(said=f"Loading {one.network}", calls=0, most=None))
        shared, method = self.shelf.take(one.network, self._expect_wanted), one.explainer
        image = self.given.image(shared.encoder)
        self._tell(self.state._replace(said=f"Making {one.network} ready", most=method.calls))
        with self._alone(shared) as begun:

            def told(calls: int) -> None:
                self._expect_wanted()
                begun()
                said = f"{one.method} by {one.network}: {progress(method, calls)}"
                self._tell(self.state._replace(said=said, calls=calls))

            def seen(found: Explanation) -> None:
                self._tell(self.state._replace(found=(*done, found), so_far=True))

            return explain_with_previews(method, shared.encoder, image, seed=one.seed, on_calls=told, on_preview=seen)

    @contextmanager
    def _alone(self, shared: Shared) -> Iterator[Callable[[], None]]:
        """Nobody else makes the encoder ready, or uses it on a GPU; what is given ends that where it may end early."""
        while not shared.lock.acquire(timeout=PAUSE):
            self._expect_wanted()
        held = [shared.lock]

        def end() -> None:
            while held:
                held.pop().release()

        try:
            yield end if shared.encoder.device.type == "cpu" else lambda: None
        finally:
            end()

    def _expect_wanted(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def _note(self, words: str) -> None:
        if words not in self.state.notes:
            self._tell(self.state._replace(notes=(*self.state.notes, words)))

    def _tell(self, state: State) -> None:
        """What has ended stays as it ended."""
        with self._changed:
            if self.state.end is None:
                self.state = state
                self._changed.notify_all()


def progress(method: Method, calls: int) -> str:
    """How many encoder calls have been made, of how many.

    >>> progress(Repeat(budget=256), 65), progress(Repeat(), 65)
    ('65 of 257 encoder calls', '65 of at most 4,097 encoder calls')
    """
    if method.calls is None:
        return f"{calls:,} encoder calls"
    open_ended = isinstance(method, Repeat) and method.is_fast and method.budget == "auto"
    return f"{calls:,} of {'at most ' if open_ended else ''}{max(calls, method.calls):,} encoder calls"
