"""Tests of the page of a run: its path is printed, it is written again, and never over a page of the user's own."""

import re

import PIL.Image
import pytest
from command import SMALL, run_here, without_image_warnings
from skimage import data

from repeat_xai.output.page import images_page as folder

FAST = ["--estimator", "exact", "--masks", "4", "--repeats", "2"]
OURS = '<meta name="generator" content="repeat-xai '


@pytest.fixture
def run(photo, tmp_path, monkeypatch, capsys):
    def explain(*options, command="explain"):
        fast = FAST if command == "explain" else ["--masks", 40, "--repeats", 2]
        return run_here(monkeypatch, capsys, command, photo, "--out", tmp_path / "out", *fast, *SMALL, *options)

    return explain


@pytest.mark.slow
@pytest.mark.parametrize("command", ["explain", "screen"])
def test_a_run_prints_where_its_page_is_and_a_second_run_writes_it_again(run, tmp_path, command):
    page = tmp_path / "out" / "index.html"
    status, output = run(command=command)
    assert status == 0
    assert output.out.splitlines()[-1] == f"Open {page} in a browser to look into them"
    before = page.read_text()
    assert OURS in before
    page.unlink()
    status, output = run(command=command)
    assert status == 0
    assert "already done" in output.out
    assert page.read_text() == before
    maps = next(page.parent.rglob("*.npz"))
    maps.write_text("no longer maps")
    status, output = run(command=command)
    assert (status, without_image_warnings(output.err)) == (0, f"repeat-xai: {maps}: damaged, made again\n")
    assert "already done" not in output.out
    assert OURS in page.read_text()


@pytest.mark.parametrize("command", ["explain", "screen"])
def test_the_users_own_page_stops_the_run_before_it_begins(run, tmp_path, command):
    page = tmp_path / "out" / "index.html"
    page.parent.mkdir()
    page.write_text("<!doctype html><title>mine</title>")
    status, output = run(command=command)
    message = f"repeat-xai: {page}: is a page of your own and is not written over; choose another folder\n"
    assert (status, output.out, output.err) == (1, "", message)
    assert page.read_text() == "<!doctype html><title>mine</title>"
    assert list(page.parent.iterdir()) == [page]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["explain", "screen"])
def test_an_interrupted_page_leaves_no_file(run, tmp_path, monkeypatch, command):
    def interrupted(page):
        yield "<!doctype html>"
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(folder, "page_html", interrupted)
        status, output = run(command=command)
    assert status == 130
    assert without_image_warnings(output.err) == "repeat-xai: interrupted; run the same command again to go on\n"
    assert [path for path in (tmp_path / "out").iterdir() if "index" in path.name] == []
    assert run(command=command)[0] == 0
    assert OURS in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.slow
def test_methods_are_on_one_page_with_the_ways_to_their_files(run, tmp_path):
    assert run("--method", "repeat,relax")[0] == 0
    text = (tmp_path / "out" / "index.html").read_text()
    links = re.findall(r'"href": "([^"]*)"', text)
    assert {"repeat/cat.npz", "relax/cat.npz", "relax/cat.png", "cat.comparison.png"} <= set(links)
    for link in links:
        assert (tmp_path / "out" / link).exists()


@pytest.mark.slow
def test_with_json_there_are_lines_for_images_only(run, tmp_path):
    status, output = run("--json")
    assert status == 0
    assert len(output.out.splitlines()) == 1
    assert (tmp_path / "out" / "index.html").exists()
    panel = tmp_path / "out" / "cat.png"
    panel.unlink()
    status, output = run("--json")
    assert len(output.out.splitlines()) == 1
    assert (status, without_image_warnings(output.err)) == (0, f"repeat-xai: {panel}: missing, made again\n")


@pytest.mark.slow
def test_the_reference_is_drawn_with_the_images(tmp_path, monkeypatch, capsys):
    for name, step in (("photos", 40), ("known", 30)):
        (tmp_path / name).mkdir()
        for i in range(2):
            crop = data.coffee()[step * i : step * i + 120, step * i : step * i + 120]
            PIL.Image.fromarray(crop).save(tmp_path / name / f"{i}.png")
    options = [tmp_path / "photos", "--known", tmp_path / "known", "--out", tmp_path / "out", *SMALL, "--masks", 40]
    assert run_here(monkeypatch, capsys, "screen", *options)[0] == 0
    text = (tmp_path / "out" / "index.html").read_text()
    assert sum(int(count) for count in re.findall(r"(\d+) of the reference</title>", text)) == 2
    assert "more uncertain than" in text
