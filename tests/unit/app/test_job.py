"""Jobs: their progress, cancellation, failures and warnings, and how they share encoders."""

import multiprocessing
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import loads
import pytest
import torch
from serving import until

from repeat_xai.app import encoder_process
from repeat_xai.app import job as job_module
from repeat_xai.app.encoder_cache import EncoderCache
from repeat_xai.app.job import Job
from repeat_xai.app.job_request import JobRequest, JobSettings
from repeat_xai.app.live_preview import explain_with_previews
from repeat_xai.app.photos import sample_photo
from repeat_xai.app.warning_routing import PACKAGE_FOLDER, routed_warnings
from repeat_xai.errors import RepeatError
from repeat_xai.experiments.settings import EncoderSpec

SMALL = EncoderSpec(name="torchvision:squeezenet1_1", weights="random", size=64)


@pytest.fixture(scope="module")
def encoders():
    return EncoderCache(device="cpu")


def request_for(method="repeat", encoder_spec=SMALL, seed=0, **settings):
    return JobRequest(encoder_spec=encoder_spec, method=method, settings=JobSettings(**settings), seed=seed)


def job_of(encoders, *requests):
    return Job(requests, sample_photo("chelsea.png"), encoders)


def keep_waiting():
    """Check a job that was not cancelled."""


def explanation_of(job_request, encoders):
    encoder = encoders.get(job_request.encoder_spec, keep_waiting).encoder
    image = sample_photo("chelsea.png").image_for(encoder)
    return job_request.explainer(encoder, image, seed=job_request.seed)


def no_job_runs():
    return not any("_work" in thread.name for thread in threading.enumerate())


@pytest.mark.slow
def test_a_job_yields_its_progress_and_ends_with_the_explanation(encoders):
    job_request = request_for(budget=384, seed=1)
    states = list(job_of(encoders, job_request).states())
    *before, last = states
    assert last.end == "done"
    assert all(state.end is None for state in before)
    assert [state.calls for state in states] == sorted(state.calls for state in states)
    assert torch.equal(last.explanations[0].importance, explanation_of(job_request, encoders).importance)
    assert not last.is_preview


@pytest.mark.slow
def test_two_explanations_are_computed_one_after_the_other(encoders):
    both = request_for("relax", masks=200), request_for("saliency", passes=2)
    last = list(job_of(encoders, *both).states())[-1]
    assert [explanation.provenance["method"]["name"] for explanation in last.explanations] == ["Relax", "Spread"]
    for explanation, job_request in zip(last.explanations, both, strict=True):
        assert torch.equal(explanation.importance, explanation_of(job_request, encoders).importance)


@pytest.mark.slow
def test_a_cancelled_job_calls_the_encoder_no_more(encoders, monkeypatch):
    calls = []

    def explain_and_record(*arguments, on_calls, **options):
        return explain_with_previews(*arguments, on_calls=lambda n: (calls.append(n), on_calls(n)), **options)

    monkeypatch.setattr(job_module, "explain_with_previews", explain_and_record)
    spec = EncoderSpec(name=SMALL.name, weights="random", size=224)
    job = job_of(encoders, request_for("relax", encoder_spec=spec, masks=500))
    for state in job.states():
        if state.calls:
            job.cancel()
    assert job.state.end == "cancelled"
    assert until(no_job_runs, seconds=60)
    assert calls[-1] < 501


def test_a_job_cancelled_at_the_last_moment_stays_cancelled(encoders, monkeypatch):
    job = job_of(encoders, request_for("relax", masks=20))

    def explain_and_cancel(*arguments, **options):
        explanation = explain_with_previews(*arguments, **options)
        job.cancel()
        return explanation

    monkeypatch.setattr(job_module, "explain_with_previews", explain_and_cancel)
    assert list(job.states())[-1].end == "cancelled"
    assert until(no_job_runs)
    assert (job.state.end, job.state.explanations) == ("cancelled", ())


def test_a_job_cancelled_before_it_starts_does_nothing(encoders):
    job = job_of(encoders, request_for(encoder_spec=EncoderSpec(name="torchvision:nothing")))
    job.cancel()
    assert [state.end for state in job.states()] == ["cancelled"]


def test_a_job_cancelled_while_another_prepares_the_encoder_does_not_wait(encoders):
    job = job_of(encoders, request_for("relax", masks=20))
    with encoders.get(SMALL, keep_waiting).lock:
        states = job.states()
        assert until(lambda: "Preparing" in next(states).message)
        job.cancel()
        assert list(states)[-1].end == "cancelled"
    assert until(no_job_runs)
    assert list(job_of(encoders, request_for("relax", masks=20)).states())[-1].end == "done"


def test_a_job_cancelled_while_an_encoder_loads_ends_its_process(monkeypatch):
    monkeypatch.setattr(encoder_process, "_load", loads.endless)
    job = job_of(EncoderCache(device="cpu"), request_for("relax", masks=20))
    states = job.states()
    assert until(lambda: "Loading" in next(states).message)
    assert until(multiprocessing.active_children)
    job.cancel()
    assert list(states)[-1].end == "cancelled"
    assert until(lambda: not multiprocessing.active_children())
    assert until(no_job_runs)


@pytest.mark.slow
def test_a_failed_job_says_why_and_releases_the_encoder(encoders):
    unknown = request_for(encoder_spec=EncoderSpec(name="torchvision:nothing"))
    assert list(job_of(encoders, unknown).states())[-1].message.startswith("unknown encoder 'torchvision:nothing'")
    too_small = request_for("occlusion", encoder_spec=EncoderSpec(name=SMALL.name, weights="random", size=31))
    last = list(job_of(encoders, too_small).states())[-1]
    assert last.end == "failed"
    assert "window of 32" in last.message
    assert not encoders.get(too_small.encoder_spec, keep_waiting).lock.locked()


def test_an_unexpected_error_is_said_in_a_line_and_printed(encoders, monkeypatch, capsys):
    monkeypatch.setattr(job_module, "explain_with_previews", lambda *a, **k: 1 / 0)
    last = list(job_of(encoders, request_for()).states())[-1]
    assert (last.end, last.message) == ("failed", "this should not have happened: division by zero")
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.slow
def test_concurrent_jobs_with_one_encoder_give_the_same_results_as_alone(encoders):
    spec = EncoderSpec(name="torchvision:squeezenet1_0", weights="random", size=64)
    requests = [request_for(encoder_spec=spec, budget=256, seed=seed) for seed in range(2)]
    requests += [
        request_for("guided_backprop", encoder_spec=spec, passes=3, seed=3),
        request_for("relax", encoder_spec=spec, masks=300),
    ]
    with ThreadPoolExecutor(len(requests)) as threads:
        last_states = list(threads.map(lambda asked: list(job_of(encoders, asked).states())[-1], requests))
    assert [state.end for state in last_states] == ["done"] * len(requests)
    for state, job_request in zip(last_states, requests, strict=True):
        alone = explanation_of(job_request, encoders)
        assert torch.equal(state.explanations[0].importance, alone.importance)
        assert torch.equal(state.explanations[0].uncertainty, alone.uncertainty)


def test_warnings_of_this_package_reach_the_user_whose_job_raised_them(encoders, monkeypatch):
    own_file = str(PACKAGE_FOLDER / "engine" / "scheduler.py")

    def warn_and_fail(*_, **__):
        warnings.warn_explicit("rounding decides votes", UserWarning, own_file, 1)
        warnings.warn_explicit("of another library", UserWarning, "elsewhere.py", 1)
        raise RepeatError("enough")

    monkeypatch.setattr(job_module, "explain_with_previews", warn_and_fail)
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        with routed_warnings():
            last = list(job_of(encoders, request_for()).states())[-1]
            warnings.warn_explicit("outside a job", UserWarning, own_file, 1)
    assert last.notes == ("rounding decides votes",)
    assert [str(warning.message) for warning in others] == ["of another library", "outside a job"]


def test_a_job_is_claimed_once(encoders):
    job = job_of(encoders, request_for())
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: job.claim(), range(8))) == 1
