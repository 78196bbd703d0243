"""A results folder keeps whole results, makes damaged ones again, and refuses to mix results of other settings."""

import json
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest
import torch
from hostile.damages import cut, deleted, flipped
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.errors import ConfigurationError, ImageError
from repeat_xai.output.results_folder import ResultsFolder

METHOD = rx.Repeat(base=rx.Relax(masks=20), budget=256)


def photo(path, seed):
    PIL.Image.fromarray(np.random.default_rng(seed).integers(0, 256, (40, 40, 3), np.uint8)).save(path)
    return path


@pytest.fixture(scope="module")
def encoder():
    network = nn.Sequential(nn.AvgPool2d(8), nn.Flatten())
    return rx.load_encoder(network, size=32)


@pytest.fixture
def photos(tmp_path):
    return [photo(tmp_path / f"{name}.png", seed) for seed, name in enumerate(("cat", "dog", "owl"))]


@pytest.fixture
def results(tmp_path, encoder):
    return ResultsFolder(folder=tmp_path / "out", encoder=encoder, method=METHOD, seed=3)


@pytest.mark.slow
def test_each_image_has_a_panel_its_maps_and_its_provenance(results, photos, encoder):
    outcomes = list(results.fill(photos))
    assert [outcome.path for outcome in outcomes] == photos
    for outcome, path in zip(outcomes, photos, strict=True):
        assert [file.suffix for file in outcome.files] == [".png", ".npz", ".json"]
        assert all(file.stem == path.stem for file in outcome.files)
        expected = METHOD(encoder, rx.load_image(path, encoder), seed=3)
        assert all(torch.equal(outcome.files.explanation().maps[kind], v) for kind, v in expected.maps.items())
        assert json.loads(outcome.files.provenance.read_text()) == json.loads(json.dumps(outcome.record))
        assert outcome.record["level"] == 0.95
        assert outcome.record["budget"]["masks"] == 256


@pytest.mark.slow
def test_whole_results_are_not_made_again(results, photos):
    first = list(results.fill(photos[:2]))
    with metering() as meter:
        again = list(results.fill(photos))
    assert [outcome.already_done for outcome in again] == [True, True, False]
    assert meter.calls == 257
    assert [outcome.record for outcome in again[:2]] == [json.loads(json.dumps(outcome.record)) for outcome in first]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["panel", "maps", "provenance"])
@pytest.mark.parametrize("damage", [deleted, cut(0.5), flipped(0.5)], ids=["deleted", "cut", "flipped"])
def test_damaged_results_are_made_again(results, photos, part, damage):
    before = list(results.fill(photos))[1]
    damage(getattr(before.files, part))
    with metering() as meter:
        outcomes = list(results.fill(photos))
    assert [outcome.already_done for outcome in outcomes] == [True, False, True]
    assert meter.calls == 257
    assert getattr(outcomes[1].files, part).name in outcomes[1].flaw
    assert [outcome.already_done for outcome in results.fill(photos)] == [True, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [deleted, cut(0.5)], ids=["deleted", "cut"])
@pytest.mark.parametrize("part", ["panel", "maps", "provenance"])
def test_damaged_results_of_other_settings_are_refused_as_whole_ones_are(results, photos, part, damage):
    """The files that are left say with which settings they were made."""
    (before,) = results.fill(photos[:1])
    damage(getattr(before.files, part))
    content = [file.read_bytes() for file in before.files if file.exists()]
    with metering() as meter, pytest.raises(ConfigurationError, match="seed 3, not 4"):
        list(replace(results, seed=4).fill(photos[:1]))
    assert meter.calls == 0
    assert [file.read_bytes() for file in before.files if file.exists()] == content


def test_results_of_which_nothing_can_be_read_are_made_again_with_any_settings(results, photos):
    (before,) = results.fill(photos[:1])
    cut(0.5)(before.files.maps)
    cut(0.5)(before.files.provenance)
    (outcome,) = replace(results, seed=4).fill(photos[:1])
    assert (outcome.record["seed"], outcome.already_done) == (4, False)


OTHER_SETTINGS = {
    "seed": (lambda results: replace(results, seed=4), "seed 3, not 4"),
    "level": (lambda results: replace(results, level=0.9), "level 0.95, not 0.9"),
    "budget": (lambda results: replace(results, method=replace(METHOD, budget=384)), "budget 256, not 384"),
    "threshold": (lambda results: replace(results, method=replace(METHOD, threshold="otsu")), "'mean', not 'otsu'"),
    "masks": (lambda results: replace(results, method=replace(METHOD, base=rx.Relax(masks=30))), "masks 20, not 30"),
    "method": (lambda results: replace(results, method=rx.Relax(masks=20)), "method.name 'Repeat', not 'Relax'"),
    "base": (lambda results: replace(results, method=rx.Saliency()), "method.name 'Repeat', not 'Saliency'"),
    "encoder": (
        lambda results: replace(results, encoder=rx.load_encoder(results.encoder.module, size=32, name="other")),
        "encoder.name 'Sequential', not 'other'",
    ),
    "input": (
        lambda results: replace(results, encoder=rx.load_encoder(results.encoder.module, size=40)),
        "size [32, 32], not [40, 40]",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHER_SETTINGS)
def test_results_of_other_settings_are_refused_in_one_line_that_names_what_differs(results, photos, case):
    (before,) = results.fill(photos[:1])
    content = [file.read_bytes() for file in before.files]
    change, difference = OTHER_SETTINGS[case]
    with metering() as meter, pytest.raises(ConfigurationError, match="choose another") as refusal:
        list(change(results).fill(photos[:1]))
    assert difference in str(refusal.value)
    assert str(before.files.provenance) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "--" not in str(refusal.value)
    assert meter.calls == 0
    assert [file.read_bytes() for file in before.files] == content


def test_another_number_of_copies_per_batch_is_no_other_setting(results, photos):
    list(results.fill(photos[:1]))
    other_batches = replace(METHOD, base=replace(METHOD.base, chunk=7))
    (outcome,) = replace(results, method=other_batches).fill(photos[:1])
    assert outcome.already_done


@pytest.mark.parametrize("order", [[1], [1, 0]], ids=["another image", "another image first"])
def test_other_images_are_not_added_with_other_settings(results, photos, order):
    list(results.fill(photos[:1]))
    names = sorted(path.name for path in results.folder.iterdir())
    with metering() as meter, pytest.raises(ConfigurationError, match="seed 3, not 4"):
        list(replace(results, seed=4).fill([photos[number] for number in order]))
    assert meter.calls == 0
    assert sorted(path.name for path in results.folder.iterdir()) == names


def test_results_of_a_method_without_uncertainty_are_kept_and_whole(results, photos):
    saliency = replace(results, method=rx.Saliency())
    (outcome,) = saliency.fill(photos[:1])
    assert outcome.files.explanation().uncertainty is None
    assert [again.already_done for again in saliency.fill(photos[:1])] == [True]


@pytest.mark.slow
def test_an_image_that_cannot_be_read_fails_alone_and_in_order(results, photos, tmp_path):
    damaged = tmp_path / "bad.png"
    damaged.write_bytes(b"no picture")
    outcomes = list(results.fill([damaged, photos[0], damaged, photos[1]]))
    assert [type(outcome.error) for outcome in outcomes] == [ImageError, type(None), ImageError, type(None)]
    assert [outcome.path for outcome in outcomes] == [damaged, photos[0], damaged, photos[1]]


@pytest.mark.slow
def test_two_images_of_one_name_have_results_of_their_own(results, photos, tmp_path):
    (tmp_path / "other").mkdir()
    other = photo(tmp_path / "other" / "cat.png", seed=9)
    outcomes = list(results.fill([photos[0], other]))
    assert [outcome.files.maps.name for outcome in outcomes] == ["cat.npz", "cat-2.npz"]
    assert [outcome.files.maps.name for outcome in results.fill([other, photos[0]])] == ["cat-2.npz", "cat.npz"]
