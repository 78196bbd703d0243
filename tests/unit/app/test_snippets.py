"""The command and the script to be copied compute the same maps as the app, bit for bit."""

import shlex
from pathlib import Path

import PIL.Image
import pytest
import torch
from command import run_here
from skimage import data

import repeat_xai as rx
from repeat_xai.app.job_request import JobRequest, JobSettings
from repeat_xai.app.snippets import command_snippet, python_snippet
from repeat_xai.experiments.settings import EncoderSpec

SMALL = EncoderSpec(name="torchvision:squeezenet1_1", weights="random", size=64)
OTHER = EncoderSpec(name="torchvision:squeezenet1_0", weights="random", size=64)


def request_for(method="repeat", encoder_spec=SMALL, seed=0, **settings):
    return JobRequest(encoder_spec=encoder_spec, method=method, settings=JobSettings(**settings), seed=seed)


@pytest.fixture
def save_photo(tmp_path, monkeypatch):
    def save(name):
        PIL.Image.fromarray(data.chelsea()[::4, ::4]).save(tmp_path / name)
        monkeypatch.chdir(tmp_path)
        return name

    return save


def explanation_of(job_request, photo):
    spec = job_request.encoder_spec
    encoder = rx.load_encoder(spec.name, weights=spec.weights, size=spec.size, device="cpu")
    return job_request.explainer(encoder, rx.load_image(photo, encoder), seed=job_request.seed)


def expect_same(file, expected):
    saved = rx.Explanation.load(file)
    assert torch.equal(saved.importance, expected.importance)
    assert torch.equal(saved.uncertainty, expected.uncertainty)


@pytest.mark.slow
@pytest.mark.parametrize(
    "job_request",
    [
        request_for(budget=256, seed=2),
        request_for(estimator="exact", masks=20, repeats=3),
        request_for("relax", masks=30, seed=5),
        request_for("saliency", passes=3, masks=50, estimator="exact", repeats=3),
        request_for("repeat:smoothgrad", repeats=2),
    ],
    ids=lambda job_request: f"{job_request.method}",
)
def test_command_and_script_give_the_maps_of_the_app(save_photo, monkeypatch, capsys, job_request):
    name = save_photo("cat.png")
    expected = explanation_of(job_request, name)
    words = shlex.split(command_snippet([job_request], name, device="cpu"))
    assert words[:5] == ["repeat-xai", "explain", "cat.png", "--out", "results"]
    assert run_here(monkeypatch, capsys, *words[1:])[0] == 0
    expect_same("results/cat.npz", expected)
    exec(python_snippet([job_request], name, device="cpu"), {})
    expect_same("cat.npz", expected)


@pytest.mark.slow
def test_a_comparison_is_computed_by_command_and_script_too(save_photo, monkeypatch, capsys):
    name = save_photo("cat.png")
    both = [request_for("relax", masks=30, passes=2), request_for("saliency", masks=30, passes=2)]
    words = shlex.split(command_snippet(both, name, device="cpu"))
    assert run_here(monkeypatch, capsys, *words[1:])[0] == 0
    exec(python_snippet(both, name, device="cpu"), {})
    for number, job_request in enumerate(both, start=1):
        expected = explanation_of(job_request, name)
        expect_same(f"results/{job_request.method}/cat.npz", expected)
        expect_same(f"cat-{number}.npz", expected)
    two_encoders = [request_for("relax", masks=30), request_for("relax", encoder_spec=OTHER, masks=30)]
    commands = command_snippet(two_encoders, name, device="cpu").split("\n\n")
    for command, job_request in zip(commands, two_encoders, strict=True):
        words = shlex.split(command)
        assert run_here(monkeypatch, capsys, *words[1:])[0] == 0
        expect_same(f"{words[words.index('--out') + 1]}/cat.npz", explanation_of(job_request, name))


def test_a_photo_may_have_any_name(save_photo, monkeypatch, capsys):
    job_request, name = request_for("relax", masks=12), '-my cat\'s "photo" $HOME Käße 猫 𠮷.png'
    save_photo(name)
    words = shlex.split(command_snippet([job_request], name, device="cpu"))
    assert run_here(monkeypatch, capsys, *words[1:])[0] == 0
    exec(python_snippet([job_request], name, device="cpu"), {})
    expected = explanation_of(job_request, f"./{name}")
    expect_same(f"results/{Path(name).stem}.npz", expected)
    expect_same(f"{Path(name).stem}.npz", expected)


def test_defaults_are_left_out():
    job_request = request_for(encoder_spec=EncoderSpec(name="efficientnet_lite0"))
    assert command_snippet([job_request], "cat.png", device="auto") == "repeat-xai explain cat.png --out results"
    script = python_snippet([job_request], "cat.png", device="auto")
    assert "explanation = rx.Repeat()(encoder, image, seed=0)\n" in script


def test_the_budget_is_an_option_of_the_command():
    job_request = request_for(encoder_spec=EncoderSpec(name="efficientnet_lite0"), budget=256)
    command = command_snippet([job_request], "cat.png", device="auto")
    assert command == "repeat-xai explain cat.png --out results --budget 256"


@pytest.mark.parametrize(
    ("method", "settings"), [("repeat", {"estimator": "exact"}), ("repeat", {"masks": 9}), ("relax", {}), ("lime", {})]
)
def test_a_budget_that_the_method_does_not_use_is_no_option_of_the_command(method, settings):
    command = command_snippet([request_for(method, budget=256, **settings)], "cat.png", device="auto")
    assert "--budget" not in command
