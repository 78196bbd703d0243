"""The command and the Python that are given make the same maps, bit for bit."""

import shlex
from pathlib import Path

import PIL.Image
import pytest
import torch
from command import run_here
from skimage import data

import repeat_xai as rx
from repeat_xai.app.job_request import Budget, Wanted
from repeat_xai.app.snippets import command, python
from repeat_xai.engine.scheduler import only
from repeat_xai.experiments.settings import Network

SMALL = Network(name="torchvision:squeezenet1_1", weights="random", size=64)
OTHER = Network(name="torchvision:squeezenet1_0", weights="random", size=64)


def wanted(method="repeat", network=SMALL, seed=0, **budget):
    return Wanted(network=network, method=method, budget=Budget(**budget), seed=seed)


@pytest.fixture
def photo(tmp_path, monkeypatch):
    def put(name):
        PIL.Image.fromarray(data.chelsea()[::4, ::4]).save(tmp_path / name)
        monkeypatch.chdir(tmp_path)
        return name

    return put


def own(one, photo):
    network = one.network
    encoder = rx.load_encoder(network.name, weights=network.weights, size=network.size, device="cpu")
    return only(one.explainer.answers(encoder, (rx.load_image(photo, encoder),), seed=one.seed))


def expect_same(file, expected):
    found = rx.Explanation.load(file)
    assert torch.equal(found.importance, expected.importance)
    assert torch.equal(found.uncertainty, expected.uncertainty)


@pytest.mark.parametrize(
    "one",
    [
        wanted(pool=256, seed=2),
        wanted(estimator="exact", masks=20, repeats=3),
        wanted("relax", masks=30, seed=5),
        wanted("saliency", passes=3),
        wanted("repeat:smoothgrad", repeats=2),
    ],
    ids=lambda one: f"{one.method}",
)
def test_both_give_the_same_maps(photo, monkeypatch, capsys, one):
    name = photo("cat.png")
    expected = own(one, name)
    line = shlex.split(command([one], name, device="cpu"))
    assert line[:5] == ["repeat-xai", "explain", "cat.png", "--out", "results"]
    assert run_here(monkeypatch, capsys, *line[1:])[0] == 0
    expect_same("results/cat.npz", expected)
    exec(python([one], name, device="cpu"), {})
    expect_same("cat.npz", expected)


def test_of_several_too(photo, monkeypatch, capsys):
    name = photo("cat.png")
    both = [wanted("relax", masks=30, passes=2), wanted("saliency", masks=30, passes=2)]
    line = shlex.split(command(both, name, device="cpu"))
    assert run_here(monkeypatch, capsys, *line[1:])[0] == 0
    exec(python(both, name, device="cpu"), {})
    for number, one in enumerate(both, start=1):
        expected = own(one, name)
        expect_same(f"results/{one.method}/cat.npz", expected)
        expect_same(f"cat-{number}.npz", expected)
    apart = [wanted("relax", masks=30), wanted("relax", network=OTHER, masks=30)]
    lines = [shlex.split(line) for line in command(apart, name, device="cpu").split("\n\n")]
    for line, one in zip(lines, apart, strict=True):
        assert run_here(monkeypatch, capsys, *line[1:])[0] == 0
        expect_same(f"{line[line.index('--out') + 1]}/cat.npz", own(one, name))


def test_a_photo_may_have_any_name(photo, monkeypatch, capsys):
    one, name = wanted("relax", masks=12), '-my cat\'s "photo" $HOME Käße 猫 𠮷.png'
    photo(name)
    line = shlex.split(command([one], name, device="cpu"))
    assert run_here(monkeypatch, capsys, *line[1:])[0] == 0
    exec(python([one], name, device="cpu"), {})
    expected = own(one, f"./{name}")
    expect_same(f"results/{Path(name).stem}.npz", expected)
    expect_same(f"{Path(name).stem}.npz", expected)


def test_what_goes_without_saying_is_not_said():
    one = wanted(network=Network(name="efficientnet_lite0"))
    assert command([one], "cat.png", device="auto") == "repeat-xai explain cat.png --out results"
    assert "explanation = rx.Repeat()(encoder, image, seed=0)\n" in python([one], "cat.png", device="auto")
