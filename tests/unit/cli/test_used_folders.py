"""Tests that a command refuses a folder with results of other settings, and then leaves every byte as it was."""

import PIL.Image
import pytest
from command import SMALL, run_here
from skimage import data

FEW = ["--masks", 20, "--repeats", 2]
ENCODER = ["--encoder", "torchvision:squeezenet1_1=random", "--size", "64"]


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        PIL.Image.fromarray(data.chelsea()[40 * number : 40 * number + 150, :150]).save(folder / f"cat{number}.png")
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs a command and returns its exit status and what it wrote to standard error."""

    def run_command(*arguments):
        status, output = run_here(monkeypatch, capsys, *arguments)
        return status, output.err

    return run_command


def content(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def expect_refused(run, out, word, *arguments):
    before = content(out)
    status, errors = run(*arguments)
    assert (status, len(errors.splitlines())) == (2, 1), errors
    assert word in errors
    assert "another folder" in errors
    assert content(out) == before


@pytest.mark.slow
def test_screen_refuses_another_seed_and_keeps_its_table(photos, tmp_path, run):
    out = tmp_path / "out"
    command = ("screen", photos, "--out", out, *SMALL, *FEW)
    assert run(*command)[0] == 0
    expect_refused(run, out, "seed 0, not 1", *command, "--seed", 1)


@pytest.mark.slow
def test_screen_interrupted_before_anything_new_keeps_its_table(photos, tmp_path, run, monkeypatch):
    from repeat_xai.output import screening

    out = tmp_path / "out"
    command = ("screen", photos, "--out", out, *SMALL, *FEW)
    assert run(*command)[0] == 0
    before = content(out)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(screening, "_collect", interrupted)
    assert run(*command)[0] == 130
    assert content(out) == before


@pytest.mark.parametrize("name", ["screen.csv", "screen.parquet", "screen.json"])
def test_screen_keeps_a_table_of_the_users_own(photos, tmp_path, run, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("my own")
    expect_refused_own(run, out, name, "screen", photos, "--out", out, *SMALL, *FEW)


def expect_refused_own(run, out, word, *arguments):
    before = content(out)
    status, errors = run(*arguments)
    assert status == 1
    assert word in errors
    assert content(out) == before


@pytest.mark.slow
def test_explain_refuses_another_seed_for_further_images(photos, tmp_path, run):
    out = tmp_path / "out"
    explain = ("explain", "--out", out, *SMALL, *FEW)
    assert run(*explain, photos / "cat1.png")[0] == 0
    expect_refused(run, out, "seed 0, not 1", *explain, photos / "cat0.png", photos / "cat1.png", "--seed", 1)
    expect_refused(run, out, "seed 0, not 1", *explain, photos / "cat2.png", "--seed", 1)


@pytest.mark.slow
def test_explain_refuses_to_replace_a_comparison_by_that_of_other_methods(photos, tmp_path, run):
    out = tmp_path / "out"
    explain = ("explain", photos / "cat1.png", "--out", out, *SMALL, *FEW)
    assert run(*explain, "--method", "repeat,relax")[0] == 0
    expect_refused(run, out, "another method", *explain, "--method", "repeat,occlusion")
    expect_refused(run, out, "another method", *explain, "--method", "repeat")
    assert run(*explain, "--method", "repeat,relax,occlusion")[0] == 0


@pytest.mark.slow
def test_evaluate_refuses_another_seed_and_keeps_its_tables(photos, tmp_path, run):
    out = tmp_path / "out"
    evaluate = ("evaluate", "--dataset", photos, "--out", out, *ENCODER, *FEW, "--methods", "relax")
    assert run(*evaluate)[0] == 0
    expect_refused(run, out, "seed 0, not 9", *evaluate, "--seed", 9)
