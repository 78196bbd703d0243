"""The command `match` writes all its files, goes on where it was, and refuses in one line."""

import json

import PIL.Image
import pytest
from command import SMALL, run_here, without_image_warnings
from skimage import data

import repeat_xai as rx

FEW = [*SMALL, "--budget", 1, "--cells", 3]


@pytest.fixture
def pair(tmp_path, photo):
    other = tmp_path / "other.png"
    PIL.Image.fromarray(data.coffee()).save(other)
    return photo, other


@pytest.mark.slow
def test_it_writes_pictures_match_and_record_and_knows_them_again(pair, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    status, output = run_here(monkeypatch, capsys, "match", *pair, "--out", out, *FEW, "--json")
    assert (status, without_image_warnings(output.err)) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["a.png", "b.png", "match.json", "match.npz", "match.png"]
    line, record = json.loads(output.out), json.loads((out / "match.json").read_text())
    match = rx.Match.load(out / "match.npz")
    assert line["encoder_calls"] == record["encoder_calls"] == match.encoder_calls == 2 * 64 + 2
    assert line["certain"] == len(record["matches"]) == len(match.partners(0.95))
    assert record["pairs"] == match.effect.numel() == 81
    assert record["typical_effect"] == match.typical_effect
    assert not line["already_done"]

    _, again = run_here(monkeypatch, capsys, "match", *pair, "--out", out, *FEW, "--json")
    assert json.loads(again.out) == line | {"already_done": True}
    status, other = run_here(monkeypatch, capsys, "match", *pair, "--out", out, *FEW, "--seed", 1)
    assert status == 2
    assert "seed" in other.err
    content = (out / "match.npz").read_bytes()
    (out / "match.npz").write_bytes(content[:100])
    _, mended = run_here(monkeypatch, capsys, "match", *pair, "--out", out, *FEW, "--json")
    assert not json.loads(mended.out)["already_done"]
    assert rx.Match.load(out / "match.npz").partners() == match.partners()


def test_a_picture_of_the_users_own_is_kept(pair, tmp_path, monkeypatch, capsys):
    own = tmp_path / "out" / "a.png"
    own.parent.mkdir()
    PIL.Image.new("RGB", (9, 9)).save(own)
    content = own.read_bytes()
    status, output = run_here(monkeypatch, capsys, "match", *pair, "--out", own.parent, *FEW)
    assert status == 1
    assert output.err.count("\n") == 1
    assert "your own" in output.err
    assert own.read_bytes() == content


@pytest.mark.parametrize(
    ("options", "status", "word"),
    [
        (["--level", 1], 2, "level"),
        (["--budget", 0], 2, "budget"),
        (["--masks", 3], 2, "budget"),
        (["--encoder", "torchvision:squeezenet1_2"], 2, "squeezenet1_1"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(pair, tmp_path, monkeypatch, capsys, options, status, word):
    ended, output = run_here(monkeypatch, capsys, "match", *pair, "--out", tmp_path / "out", *FEW, *options)
    assert ended == status
    assert output.err.count("\n") == 1
    assert word in output.err
    assert not (tmp_path / "out").exists()


def test_an_image_that_is_missing_is_named(photo, tmp_path, monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "match", photo, tmp_path / "gone.png", "--out", tmp_path / "o", *FEW)
    assert status == 1
    assert "gone.png" in output.err
    assert output.err.count("\n") == 1
