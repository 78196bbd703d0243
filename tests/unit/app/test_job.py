"""Work on threads of its own: told, cancelled, failing alone, sharing encoders."""

import multiprocessing
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import loads
import pytest
import torch
from repeat_xai.app.explanation_run import Run
from serving import until

from repeat_xai.app import encoder_process as loading
from repeat_xai.app import job as room
from repeat_xai.app.encoder_cache import Shelf
from repeat_xai.app.job import Job
from repeat_xai.app.job_request import Budget, Wanted
from repeat_xai.app.photos import sample
from repeat_xai.app.warning_routing import HERE, routing
from repeat_xai.engine.scheduler import only
from repeat_xai.errors import RepeatError
from repeat_xai.experiments.settings import Network

SMALL = Network(name="torchvision:squeezenet1_1", weights="random", size=64)


@pytest.fixture(scope="module")
def shelf():
    return Shelf(device="cpu")


def wanted(method="repeat", network=SMALL, seed=0, **budget):
    return Wanted(network=network, method=method, budget=Budget(**budget), seed=seed)


def job(shelf, *asked):
    return Job(asked, sample("chelsea.png"), shelf)


def own(one, shelf):
    encoder = shelf.take(one.network, list).encoder
    return only(one.explainer.answers(encoder, (sample("chelsea.png").image(encoder),), seed=one.seed))


def test_it_tells_how_far_it_is_and_ends_with_what_was_found(shelf):
    one = wanted(pool=384, seed=1)
    states = list(job(shelf, one).states())
    *before, last = states
    assert last.end == "done"
    assert all(state.end is None for state in before)
    assert [state.calls for state in states] == sorted(state.calls for state in states)
    assert torch.equal(last.found[0].importance, own(one, shelf).importance)
    assert not last.so_far


def test_two_are_found_one_after_the_other(shelf):
    both = wanted("relax", masks=200), wanted("saliency", passes=2)
    last = list(job(shelf, *both).states())[-1]
    assert [one.provenance["method"]["name"] for one in last.found] == ["Relax", "Spread"]
    for found, one in zip(last.found, both, strict=True):
        assert torch.equal(found.importance, own(one, shelf).importance)


def test_cancelled_it_calls_the_encoder_no_more(shelf, monkeypatch):
    heard = []
    monkeypatch.setattr(room, "Run", lambda *a, told, **k: Run(*a, told=lambda n: (heard.append(n), told(n)), **k))
    work = job(shelf, wanted("relax", network=Network(name=SMALL.name, weights="random", size=224), masks=500))
    for state in work.states():
        if state.calls:
            work.cancel()
    assert work.state.end == "cancelled"
    time.sleep(0.5)
    count = len(heard)
    assert heard[-1] < 501
    time.sleep(0.5)
    assert len(heard) == count


def test_cancelled_at_the_last_moment_it_stays_so(shelf, monkeypatch):
    work = job(shelf, wanted("relax", masks=20))
    real = Run.explanation
    monkeypatch.setattr(Run, "explanation", lambda run: (real(run), work.cancel())[0])
    assert list(work.states())[-1].end == "cancelled"
    assert until(lambda: not any("_work" in thread.name for thread in threading.enumerate()))
    assert (work.state.end, work.state.found) == ("cancelled", ())


def test_cancelled_before_it_began_it_does_nothing(shelf):
    work = job(shelf, wanted(network=Network(name="torchvision:nothing")))
    work.cancel()
    assert [state.end for state in work.states()] == ["cancelled"]


def test_cancelled_while_another_makes_the_encoder_ready_it_does_not_wait(shelf):
    work = job(shelf, wanted("relax", masks=20))
    with shelf.take(SMALL, list).lock:
        states = work.states()
        assert until(lambda: "ready" in next(states).said)
        work.cancel()
        assert list(states)[-1].end == "cancelled"
    assert until(lambda: not any("_work" in thread.name for thread in threading.enumerate()))
    assert list(job(shelf, wanted("relax", masks=20)).states())[-1].end == "done"


def test_cancelled_while_an_encoder_loads_its_process_ends(monkeypatch):
    monkeypatch.setattr(loading, "_load", loads.endless)
    work = job(Shelf(device="cpu"), wanted("relax", masks=20))
    states = work.states()
    assert until(lambda: "Loading" in next(states).said)
    assert until(multiprocessing.active_children)
    work.cancel()
    assert list(states)[-1].end == "cancelled"
    assert until(lambda: not multiprocessing.active_children())
    assert until(lambda: not any("_work" in thread.name for thread in threading.enumerate()))


def test_what_fails_says_why_and_frees_the_encoder(shelf):
    assert list(job(shelf, wanted(network=Network(name="torchvision:nothing"))).states())[-1].said.startswith(
        "unknown encoder 'torchvision:nothing'"
    )
    too_wide = wanted("occlusion", network=Network(name=SMALL.name, weights="random", size=31))
    last = list(job(shelf, too_wide).states())[-1]
    assert (last.end, last.said) == ("failed", "a window of 32 is larger than the image, 31×31")
    assert not shelf.take(too_wide.network, list).lock.locked()


def test_what_should_not_happen_is_said_in_a_line_and_printed(shelf, monkeypatch, capsys):
    monkeypatch.setattr(room, "Run", lambda *a, **k: 1 / 0)
    last = list(job(shelf, wanted()).states())[-1]
    assert (last.end, last.said) == ("failed", "this should not have happened: division by zero")
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_many_at_once_on_one_encoder_find_what_each_finds_alone(shelf):
    network = Network(name="torchvision:squeezenet1_0", weights="random", size=64)
    asked = [wanted(network=network, pool=256, seed=seed) for seed in range(2)]
    asked += [wanted("guided_backprop", network=network, passes=3, seed=3), wanted("relax", network=network, masks=300)]
    with ThreadPoolExecutor(len(asked)) as crowd:
        ends = list(crowd.map(lambda one: list(job(shelf, one).states())[-1], asked))
    assert [state.end for state in ends] == ["done"] * len(asked)
    for state, one in zip(ends, asked, strict=True):
        alone = own(one, shelf)
        assert torch.equal(state.found[0].importance, alone.importance)
        assert torch.equal(state.found[0].uncertainty, alone.uncertainty)


def test_warnings_of_this_package_are_told_to_whom_they_concern(shelf, monkeypatch):
    def warned(*_, **__):
        warnings.warn_explicit("rounding decides votes", UserWarning, str(HERE / "engine" / "stream.py"), 1)
        warnings.warn_explicit("of another library", UserWarning, "elsewhere.py", 1)
        raise RepeatError("enough")

    monkeypatch.setattr(room, "Run", warned)
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        with routing():
            last = list(job(shelf, wanted()).states())[-1]
            warnings.warn_explicit("of nobody's", UserWarning, str(HERE / "engine" / "stream.py"), 1)
    assert last.notes == ("rounding decides votes",)
    assert [str(one.message) for one in others] == ["of another library", "of nobody's"]
