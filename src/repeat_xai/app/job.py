"""A job: the explanations that one user asked for, computed on a thread of their own."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import final

from repeat_xai.app.encoder_cache import CachedEncoder, EncoderCache
from repeat_xai.app.job_request import JobRequest, method_label
from repeat_xai.app.job_state import JobState, progress_text
from repeat_xai.app.live_preview import explain_with_previews
from repeat_xai.app.photos import ChosenPhoto
from repeat_xai.app.warning_routing import warnings_sent_to
from repeat_xai.encoders.waiting import AbandonableThread, checking
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
        self.state, self._state_changed = JobState(), threading.Condition()
        self._cancelled, self._claimed = threading.Event(), threading.Lock()

    def claim(self) -> bool:
        """Return True to the first caller alone, who may run the job, however many ask at once."""
        return self._claimed.acquire(blocking=False)

    def cancel(self) -> None:
        """Stop the job before its next batch of masked copies, or in a batch that runs in ONNX Runtime."""
        self._cancelled.set()
        self._publish(self.state._replace(message="Cancelled", end="cancelled"))

    def states(self) -> Iterator[JobState]:
        """Start the job and yield its state whenever it has changed, until the job ends."""
        AbandonableThread(self._work).start()
        yield (state := self.state)
        while state.end is None:
            time.sleep(POLL_SECONDS)
            with self._state_changed:
                while self.state is state:
                    self._state_changed.wait()
                state = self.state
            yield state

    def _work(self) -> None:
        try:
            done: tuple[Explanation, ...] = ()
            for request in self.requests:
                with warnings_sent_to(self._add_note), checking(self._check_cancelled):
                    done = (*done, self._explain(request, done))
                self._publish(self.state._replace(explanations=done, is_preview=False))
            self._publish(self.state._replace(message="Done", end="done"))
        except Cancelled:
            pass
        except RepeatError as error:
            self._publish(self.state._replace(message=str(error), end="failed"))
        except Exception as error:
            traceback.print_exc()
            self._publish(self.state._replace(message=f"this should not have happened: {reason(error)}", end="failed"))

    def _explain(self, request: JobRequest, done: tuple[Explanation, ...]) -> Explanation:
        self._check_cancelled()
        self._publish(self.state._replace(message=f"Loading {request.encoder_spec}", calls=0, max_calls=None))
        cached, method = self.encoders.get(request.encoder_spec, self._check_cancelled), request.explainer
        image = self.photo.image_for(cached.encoder)
        self._publish(self.state._replace(message=f"Preparing {request.encoder_spec}", max_calls=method.calls))
        label = f"{method_label(request.method)} with {request.encoder_spec}"
        with self._lock_of(cached) as release_early:

            def report_calls(calls: int) -> None:
                self._check_cancelled()
                release_early()
                self._publish(self.state._replace(message=f"{label}: {progress_text(method, calls)}", calls=calls))

            def show_preview(preview: Explanation) -> None:
                self._publish(self.state._replace(explanations=(*done, preview), is_preview=True))

            return explain_with_previews(
                method, cached.encoder, image, seed=request.seed, on_calls=report_calls, on_preview=show_preview
            )

    @contextmanager
    def _lock_of(self, cached: CachedEncoder) -> Iterator[Callable[[], None]]:
        """Hold an encoder's lock, and yield a function that releases it once the encoder is prepared.

        Preparing an encoder (choosing its precision, exporting it) is for one job at a time. Afterwards several jobs
        may share it on a CPU. On a GPU the function does nothing: there, jobs with one encoder take turns.
        """
        while not cached.lock.acquire(timeout=POLL_SECONDS):
            self._check_cancelled()
        held = [cached.lock]

        def release() -> None:
            while held:
                held.pop().release()

        try:
            yield release if cached.encoder.device.type == "cpu" else lambda: None
        finally:
            release()

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def _add_note(self, note: str) -> None:
        if note not in self.state.notes:
            self._publish(self.state._replace(notes=(*self.state.notes, note)))

    def _publish(self, state: JobState) -> None:
        """Make this the job's state, unless the job has ended."""
        with self._state_changed:
            if self.state.end is None:
                self.state = state
                self._state_changed.notify_all()
