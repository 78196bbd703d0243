"""The handling of users' requests: photos are taken over, jobs started and cancelled, and their results written."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, final, get_args

from repeat_xai.app.encoder_cache import EncoderCache
from repeat_xai.app.job import Job
from repeat_xai.app.job_pages import result_pages, save_files
from repeat_xai.app.job_request import JobRequest, JobSettings, offered_methods
from repeat_xai.app.job_state import JobState
from repeat_xai.app.photos import ChosenPhoto, read_photo, sample_photo
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads
from repeat_xai.data.image_files import SAMPLES
from repeat_xai.errors import ConfigurationError, ImageError, RepeatError, at_least, choose
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.files.atomic import writing
from repeat_xai.methods.repeat import Estimator
from repeat_xai.seeds import expect_seed

MAX_INPUT_SIDE = 1024
"""Largest side of the square input that a user may ask for, in pixels."""
MAX_ENCODER_CALLS = 200_000
"""Largest number of encoder calls of one job."""
MAX_MASKS = {"masks": 100_000, "budget": 20_000}
"""Largest number of masks by form field. Masks take memory, whichever encoder is called."""


class FormValues(NamedTuple):
    """The values of the form as the page sends them: a number may be missing, and is 0 in a field left at zero."""

    encoder: str
    method: str
    other_encoder: str | None
    other_method: str | None
    estimator: Any
    masks: Any
    repeats: Any
    budget: Any
    passes: Any
    size: Any
    seed: Any


class JobUpdate(NamedTuple):
    """How far a job is, and what was written since the update before."""

    state: JobState
    pages: Sequence[str] | None = None
    """Paths of the pages to show in place of those before; None: they have not changed."""
    files: Sequence[tuple[str, str]] = ()
    """Label and path of each file to download."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RequestHandler:
    """Handles what users ask for. Paths in its results are relative to the folder from which results are served."""

    sessions: Sessions
    uploads: Uploads
    encoder_cache: EncoderCache
    encoder_specs: Sequence[EncoderSpec]
    """Encoders that the form offers."""
    local: bool
    """Whether users sit at this machine: they may name further encoders, and snippets contain paths of this machine."""

    def receive_photo(self, key: str, upload: object) -> ChosenPhoto:
        """Take over an uploaded photo, which was sent by the browser that has this page open."""
        session = self.sessions.get(key)
        session.photo = None
        arrived = self.uploads.take(session.browser, upload)
        path = session.new_folder(session.photo_folder) / arrived.name
        try:
            shutil.move(arrived, path)
        except OSError as error:
            raise ImageError(f"{arrived.name}: did not arrive; upload it again") from error
        finally:
            shutil.rmtree(arrived.parent, ignore_errors=True)
        try:
            session.photo = read_photo(path)
        except ImageError:
            path.unlink(missing_ok=True)
            raise
        return session.photo

    def pick_sample(self, key: str, number: object) -> ChosenPhoto:
        """Choose one of the sample photos."""
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(SAMPLES):
            raise ConfigurationError(f"there is no sample {number}; pick one of those shown")
        photo = sample_photo(SAMPLES[number])
        if not self.local:
            photo = replace(photo, snippet_path=photo.name)
        self.sessions.get(key).photo = photo
        return photo

    def create_job(self, key: str, form: FormValues) -> Job:
        """Create a job in place of the one before, which is cancelled; `job_updates` runs it."""
        session = self.sessions.get(key)
        if session.photo is None:
            raise ConfigurationError("there is no photo yet; upload one or pick a sample")
        requests = self.job_requests(form)
        self.cancel_job(key)
        session.job_folder = session.new_folder(session.result_folder)
        session.job = Job(requests, session.photo, self.encoder_cache)
        return session.job

    def cancel_job(self, key: str) -> None:
        """Cancel the job of a page, if it has one."""
        session = self.sessions.find(key)
        if session is not None and session.job is not None:
            session.job.cancel()

    def job_updates(self, key: str) -> Iterator[JobUpdate]:
        """Run the job of a page and yield updates until it ends. A job that was started already is not run again."""
        session = self.sessions.find(key)
        if session is None or session.job is None or session.job_folder is None or not session.job.claim():
            return
        job, folder = session.job, session.job_folder
        written = job.state.explanations
        for state in job.states():
            session.last_used = time.monotonic()
            pages, files = None, []
            with session.lock:
                if session.ended:
                    return
                try:
                    if state.explanations is not written:
                        written = state.explanations
                        html_pages = result_pages(written, is_preview=state.is_preview)
                        pages = [self._write_page(folder, html) for html in html_pages]
                    if state.end == "done":
                        files = [(label, self._served_path(file)) for label, file in save_files(written, folder)]
                except RepeatError as error:
                    job.cancel()
                    state = state._replace(message=str(error).replace(f"{folder}/", ""), end="failed")
            yield JobUpdate(state, pages, files)
            if state.end is not None:
                return

    def job_requests(self, form: FormValues) -> list[JobRequest]:
        """Return the one request, or two to be compared, that the form stands for. Refuse values that make no sense."""
        choose("estimator", form.estimator, get_args(Estimator))
        for method in (form.method, form.other_method or form.method):
            choose("method", method, offered_methods())
        for name, smallest in (("masks", 1), ("repeats", 1), ("passes", 2), ("budget", 0), ("size", 0)):
            value = getattr(form, name)
            if value is not None or name not in ("budget", "size"):
                at_least(name, value, smallest)
            if value is not None and value > MAX_MASKS.get(name, value):
                raise ConfigurationError(f"{name}: {value:,} is too many here; give at most {MAX_MASKS[name]:,}")
        expect_seed(form.seed)
        settings = JobSettings(
            estimator=form.estimator,
            masks=form.masks,
            repeats=form.repeats,
            budget=cast(int | Literal["auto"], form.budget or "auto"),
            passes=form.passes,
        )
        first = JobRequest(
            encoder_spec=self._encoder_spec(form.encoder, form.size),
            method=form.method,
            settings=settings,
            seed=form.seed,
        )
        if not form.other_encoder and not form.other_method:
            return _affordable(first)
        second = replace(
            first,
            encoder_spec=self._encoder_spec(form.other_encoder or form.encoder, form.size),
            method=form.other_method or form.method,
        )
        if first == second:
            raise ConfigurationError(
                "the second result would equal the first; choose another method or another encoder"
            )
        return _affordable(first, second)

    def _encoder_spec(self, text: object, size: int | None) -> EncoderSpec:
        if not text:
            raise ConfigurationError("no encoder is chosen; choose one")
        spec = EncoderSpec.of(str(text), size=size or None)
        if spec.size is not None and spec.size > MAX_INPUT_SIDE:
            raise ConfigurationError(
                f"an input of {spec.size}×{spec.size} pixels is too large here; give at most {MAX_INPUT_SIDE}"
            )
        if not self.local:
            choose("encoder", str(spec), [str(offered) for offered in self.encoder_specs])
        return spec

    def _write_page(self, folder: Path, html: str) -> str:
        """Write a page under a name that no page has had, so that a browser never shows an older one from its cache."""
        file = folder / f"{secrets.token_hex(4)}.html"
        with writing(file) as draft:
            draft.write_text(html, encoding="utf-8")
        return self._served_path(file)

    def _served_path(self, file: Path) -> str:
        return file.relative_to(self.sessions.result_folder).as_posix()


def _affordable(*requests: JobRequest) -> list[JobRequest]:
    """Return the requests, unless together they take more encoder calls than one user may ask for."""
    calls = sum(request.explainer.calls or 0 for request in requests)
    if calls > MAX_ENCODER_CALLS:
        raise ConfigurationError(f"{calls:,} encoder calls are too many here; ask for at most {MAX_ENCODER_CALLS:,}")
    return list(requests)
