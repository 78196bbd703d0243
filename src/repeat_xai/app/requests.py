"""What the app does when a button is pressed: takes photos, begins and cancels work, and tells how far it is."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, final, get_args

from repeat_xai.app.encoder_cache import Shelf
from repeat_xai.app.job import Job, State
from repeat_xai.app.job_pages import pages, save
from repeat_xai.app.job_request import NAMES, Budget, Wanted
from repeat_xai.app.photos import Given, given, sample
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads
from repeat_xai.data.image_files import SAMPLES
from repeat_xai.errors import ConfigurationError, ImageError, RepeatError, at_least, choose
from repeat_xai.experiments.settings import Network
from repeat_xai.files.atomic import writing
from repeat_xai.methods.repeat import Estimator
from repeat_xai.seeds import expect_seed

MOST_SIDE = 1024
"""Of the square input, in pixels."""
MOST_CALLS = 200_000
"""Of the encoder, for all that is asked at once."""
MOST = {"masks": 100_000, "pool": 20_000}
"""What takes memory, whatever the encoder is asked."""


class Form(NamedTuple):
    """What is filled in, as it comes from the page: numbers may be missing, and 0 where a field is hidden."""

    encoder: str
    method: str
    other_encoder: str | None
    other_method: str | None
    estimator: Any
    masks: Any
    repeats: Any
    pool: Any
    passes: Any
    size: Any
    seed: Any


class News(NamedTuple):
    """How far the work is, and what there is to see and to keep since the last time."""

    state: State
    pages: Sequence[str] | None = None
    files: Sequence[tuple[str, str]] = ()
    """What each is called, and where it is."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Desk:
    """Where requests are dealt with; places are told from where results are served."""

    sessions: Sessions
    uploads: Uploads
    shelf: Shelf
    encoders: Sequence[Network]
    """Those to choose from."""
    local: bool
    """Whether users sit at this machine: they may name other encoders too, and are told where samples lie."""

    def receive(self, key: str, upload: object) -> Given:
        """Take over the photo that was uploaded under this key, by the browser that has this page open."""
        session = self.sessions.of(key)
        session.given = None
        arrived = self.uploads.take(session.visitor, upload)
        place = session.fresh(session.photos) / arrived.name
        try:
            shutil.move(arrived, place)
        except OSError as error:
            raise ImageError(f"{arrived.name}: did not arrive; give it again") from error
        finally:
            shutil.rmtree(arrived.parent, ignore_errors=True)
        try:
            session.given = given(place)
        except ImageError:
            place.unlink(missing_ok=True)
            raise
        return session.given

    def pick(self, key: str, number: object) -> Given:
        """Take a photo that comes with the app."""
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(SAMPLES):
            raise ConfigurationError(f"there is no sample {number}; pick one of those shown")
        picked = sample(SAMPLES[number])
        if not self.local:
            picked = replace(picked, called=picked.name)
        self.sessions.of(key).given = picked
        return picked

    def begin(self, key: str, form: Form) -> Job:
        """Ready to work, in place of whatever was under way."""
        session = self.sessions.of(key)
        if session.given is None:
            raise ConfigurationError("there is no photo yet; upload one or pick a sample")
        wanted = self.wanted(form)
        self.cancel(key)
        session.written = session.fresh(session.results)
        session.job = Job(wanted, session.given, self.shelf)
        return session.job

    def cancel(self, key: str) -> None:
        """Stop what is under way."""
        session = self.sessions.known(key)
        if session is not None and session.job is not None:
            session.job.cancel()

    def work(self, key: str) -> Iterator[News]:
        """Do it, and tell of it until it is done."""
        session = self.sessions.known(key)
        if session is None or session.job is None or session.written is None or session.job.begun:
            return
        job, folder = session.job, session.written
        found = job.state.found
        for state in job.states():
            session.used = time.monotonic()
            shown, files = None, []
            with session.lock:
                if session.ended:
                    return
                try:
                    if state.found is not found:
                        found = state.found
                        shown = [self._written(folder, page) for page in pages(found, so_far=state.so_far)]
                    if state.end == "done":
                        files = [(label, self._address(file)) for label, file in save(state.found, folder)]
                except RepeatError as error:
                    job.cancel()
                    state = state._replace(said=str(error).replace(f"{folder}/", ""), end="failed")
            yield News(state, shown, files)
            if state.end is not None:
                return

    def wanted(self, form: Form) -> list[Wanted]:
        """One explanation, or two to be compared."""
        choose("estimator", form.estimator, get_args(Estimator))
        for method in (form.method, form.other_method or form.method):
            choose("method", method, NAMES)
        for name, least in (("masks", 1), ("repeats", 1), ("passes", 2), ("pool", 0), ("size", 0)):
            value = getattr(form, name)
            if value is not None or name not in ("pool", "size"):
                at_least(name, value, least)
            if value is not None and value > MOST.get(name, value):
                raise ConfigurationError(f"{name}: {value:,} is too many here; give at most {MOST[name]:,}")
        expect_seed(form.seed)
        pool = cast(int | Literal["auto"], form.pool or "auto")
        budget = Budget(estimator=form.estimator, masks=form.masks, repeats=form.repeats, pool=pool, passes=form.passes)
        first = Wanted(
            network=self._network(form.encoder, form.size), method=form.method, budget=budget, seed=form.seed
        )
        if not form.other_encoder and not form.other_method:
            return _affordable(first)
        second = Wanted(
            network=self._network(form.other_encoder or form.encoder, form.size),
            method=form.other_method or form.method,
            budget=budget,
            seed=form.seed,
        )
        if first == second:
            raise ConfigurationError("it would be compared with itself; choose another method or another encoder")
        return _affordable(first, second)

    def _network(self, text: object, size: int | None) -> Network:
        if not text:
            raise ConfigurationError("no encoder is chosen; choose one")
        network = Network.of(str(text), size=size or None)
        if network.size is not None and network.size > MOST_SIDE:
            raise ConfigurationError(f"an input of {size}×{size} pixels is too large here; give at most {MOST_SIDE}")
        if not self.local:
            choose("encoder", str(network), [str(one) for one in self.encoders])
        return network

    def _written(self, folder: Path, page: str) -> str:
        """A page under a name that no page has had."""
        file = folder / f"{secrets.token_hex(4)}.html"
        with writing(file) as draft:
            draft.write_text(page, encoding="utf-8")
        return self._address(file)

    def _address(self, file: Path) -> str:
        return file.relative_to(self.sessions.results).as_posix()


def _affordable(*wanted: Wanted) -> list[Wanted]:
    """The same, unless it is more than one user may ask of the server at once."""
    calls = sum(one.explainer.calls or 0 for one in wanted)
    if calls > MOST_CALLS:
        raise ConfigurationError(f"{calls:,} encoder calls are too many here; ask for at most {MOST_CALLS:,}")
    return list(wanted)
