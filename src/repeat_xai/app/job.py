"""A job: the explanations that one user asked for, computed on a thread of their own."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import final

from repeat_xai.app.encoder_cache import CachedEncoder, EncoderCache
from repeat_xai.app.explanation_run import Run
from repeat_xai.app.job_request import JobRequest, method_label
from repeat_xai.app.job_state import JobState, progress_text
from repeat_xai.app.photos import ChosenPhoto
from repeat_xai.app.warning_routing import warnings_sent_to
from repeat_xai.errors import RepeatError, reason
from repeat_xai.types import Explanation

POLL_SECONDS = 0.2
"""Time between two states that are yielded, and between two tries for a lock."""


class Cancelled(BaseException):
    """The user has cancelled the job. This is not an Exception, so that handlers of errors do not catch it."""


@final
class Job:
    """The explanations of one photo that a user asked for: one, or two to be compared."""

    def __init__(self, requests: Sequence[JobRequest], photo: ChosenPhoto, encoders: EncoderCache) -> None:
        self.requests, self.photo, self.encoders = tuple(requests), photo, encoders
        self.state, self._changed = JobState(), threading.Condition()
        self._cancelled, self.started = threading.Event(), False

    def cancel(self) -> None:
        """Stop the job before its next batch of masked copies."""
        self._cancelled.set()
        self._tell(self.state._replace(message="Cancelled", end="cancelled"))

    def states(self) -> Iterator[JobState]:
        """Start the job and yield its state until it ends."""
        self.started = True
        threading.Thread(target=self._work).start()
        yield (seen := self.state)
        while seen.end is None:
            time.sleep(POLL_SECONDS)
            with self._changed:
                while self.state is seen:
                    self._changed.wait()
                seen = self.state
            yield seen

    def _work(self) -> None:
        try:
            done: tuple[Explanation, ...] = ()
            for request in self.requests:
                with warnings_sent_to(self._note):
                    done = (*done, self._explained(request, done))
                self._tell(self.state._replace(explanations=done, is_preview=False))
            self._tell(self.state._replace(message="Done", end="done"))
        except Cancelled:
            pass
        except RepeatError as error:
            self._tell(self.state._replace(message=str(error), end="failed"))
        except Exception as error:
            traceback.print_exc()
            self._tell(self.state._replace(message=f"this should not have happened: {reason(error)}", end="failed"))

    def _explained(self, request: JobRequest, done: tuple[Explanation, ...]) -> Explanation:
        self._expect_wanted()
        self._tell(self.state._replace(message=f"Loading {request.network}", calls=0, max_calls=None))
        shared, method = self.encoders.get(request.network, self._expect_wanted), request.explainer
        image = self.photo.image_for(shared.encoder)
        self._tell(self.state._replace(message=f"Preparing {request.network}", max_calls=method.calls))
        with self._alone(shared) as begun:

            def told(calls: int) -> None:
                self._expect_wanted()
                begun()
                label = f"{method_label(request.method)} with {request.network}"
                self._tell(self.state._replace(message=f"{label}: {progress_text(method, calls)}", calls=calls))

            def seen(found: Explanation) -> None:
                self._tell(self.state._replace(explanations=(*done, found), is_preview=True))

            return Run(method, shared.encoder, image, seed=request.seed, told=told, seen=seen).explanation()

    @contextmanager
    def _alone(self, shared: CachedEncoder) -> Iterator[Callable[[], None]]:
        """Hold the encoder's lock while it is made ready, and on a GPU while it is used.

        The function that is yielded releases the lock early, where that is allowed.
        """
        while not shared.lock.acquire(timeout=POLL_SECONDS):
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

    def _tell(self, state: JobState) -> None:
        """Publish a new state, unless the job has ended."""
        with self._changed:
            if self.state.end is None:
                self.state = state
                self._changed.notify_all()
