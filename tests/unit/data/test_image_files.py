"""Tests of how images are found in folders, and of what is left out."""

import os
from collections import Counter

import PIL.Image
import pytest
from PIL.PngImagePlugin import PngInfo

from repeat_xai.data.image_files import MAX_KINDS, SAMPLES, find_images, left_out_line, sample_path, search_folder
from repeat_xai.errors import ConfigurationError, ImageError


def make(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")


def save_panel(path):
    """Save a picture that is signed as those of this package are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = PngInfo()
    texts.add_text("Software", "repeat-xai 1.0")
    PIL.Image.new("RGB", (8, 8)).save(path, pnginfo=texts)


def test_images_below_a_folder_are_found_in_sorted_order_and_others_counted(tmp_path):
    images = [tmp_path / name for name in ("a.d/x.tif", "a/b/y.WEBP", "a/z.jpeg", "b.bmp", "c.png")]
    make(*reversed(images), *(tmp_path / name for name in ("a/q.gif", "r.GIF", "a/b/s.txt", "README")))
    make(tmp_path / ".hidden/no.png", tmp_path / "a/.no.png", tmp_path / ".txt")
    found, left_out = search_folder(tmp_path)
    assert found == sorted(images)
    assert left_out == {".gif": 2, ".txt": 1, "suffixless file": 1}


def test_links_to_folders_broken_links_and_special_files_are_counted(tmp_path):
    make(tmp_path / "photos/a.png", tmp_path / "elsewhere/b.png")
    (tmp_path / "photos/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "photos/circle").symlink_to(tmp_path / "photos")
    (tmp_path / "photos/broken.jpg").symlink_to("nowhere")
    (tmp_path / "photos/linked.jpg").symlink_to(tmp_path / "elsewhere/b.png")
    os.mkfifo(tmp_path / "photos/pipe.png")
    found, left_out = search_folder(tmp_path / "photos")
    assert [path.name for path in found] == ["a.png", "linked.jpg"]
    assert left_out == {"linked folder": 2, "broken link": 1, "special file": 1}


def test_pictures_of_earlier_runs_are_left_out_and_other_pngs_are_not(tmp_path):
    texts = PngInfo()
    texts.add_text("Software", "another program")
    PIL.Image.new("RGB", (8, 8)).save(tmp_path / "photo.png", pnginfo=texts)
    save_panel(tmp_path / "panel.png")
    save_panel(tmp_path / "results/panel.PNG")
    found, left_out = search_folder(tmp_path)
    assert found == [tmp_path / "photo.png"]
    assert left_out == {"repeat-xai picture": 2}
    assert find_images([tmp_path / "panel.png"]).images == [tmp_path / "panel.png"]  # it is asked for by its name


def test_a_folder_that_cannot_be_read_is_refused_or_counted(tmp_path, monkeypatch):
    make(tmp_path / "a.png", tmp_path / "closed/b.png")
    scandir, closed = os.scandir, str(tmp_path / "closed")

    def refuse(path):
        if os.fspath(path) == closed:
            raise PermissionError(13, "Permission denied", closed)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found, left_out = search_folder(tmp_path)
    assert (found, left_out) == ([tmp_path / "a.png"], {"unreadable folder": 1})
    with pytest.raises(ImageError, match="Permission denied"):
        search_folder(tmp_path / "closed")


def test_results_and_excluded_folders_are_not_searched(tmp_path):
    make(*(tmp_path / name for name in ("a.png", "out/b.png", "known/c.png", "more/known/d.png")))
    found = find_images([tmp_path], results=tmp_path / "out", excluded=[tmp_path / "known"])
    assert found.images == [tmp_path / "a.png", tmp_path / "more/known/d.png"]
    assert found.left_out == []
    assert find_images([tmp_path / "known"], excluded=[tmp_path / "known"]).images == [tmp_path / "known/c.png"]
    with pytest.raises(ConfigurationError, match="among the images"):
        find_images([tmp_path / "out/../out"], results=tmp_path / "out")


def test_files_and_folders_are_kept_in_their_order_and_none_comes_twice(tmp_path):
    make(*(tmp_path / name for name in ("b/1.png", "a/2.png", "a/3.txt", "odd.gif")))
    (tmp_path / "empty").mkdir()
    given = [tmp_path / name for name in ("b", "odd.gif", "missing.png", "empty", "a", "b/1.png")]
    found = find_images(given)
    names = ["b/1.png", "odd.gif", "missing.png", "empty", "a/2.png"]
    assert [path.relative_to(tmp_path).as_posix() for path in found.images] == names
    assert found.left_out == [f"{tmp_path / 'a'}: left out 1 .txt"]


def test_a_line_names_the_most_frequent_kinds_and_never_breaks(tmp_path):
    kinds = Counter({f".{n:02}": 20 - n for n in range(MAX_KINDS + 2)})
    assert left_out_line(tmp_path, kinds).endswith(", 15 .05, 27 other files")
    assert left_out_line(tmp_path, Counter({".a\nb": 1})).endswith(r"left out 1 .a\nb")


def test_the_sample_photos_are_there():
    assert all(sample_path(name).is_file() for name in SAMPLES)
