"""Tests of a page as a user gets it: written by the command, with an encoder, and opened from its folder."""

from command import SMALL, run_here, without_image_warnings
from skimage import data
from skimage.io import imsave

from repeat_xai.types import Explanation


def test_a_run_can_be_looked_into(show, tmp_path, monkeypatch, capsys):
    (tmp_path / "photos").mkdir()
    for name in ("chelsea", "coffee"):
        imsave(tmp_path / "photos" / f"{name}.png", getattr(data, name)()[::2, ::2])
    options = ["--out", tmp_path / "out", *SMALL, "--method", "repeat,relax", "--masks", 40, "--budget", 128]
    status, output = run_here(monkeypatch, capsys, "explain", tmp_path / "photos", *options)
    assert (status, without_image_warnings(output.err)) == (0, "")
    opened = show(tmp_path / "out" / "index.html", anchor="#image-2")
    name = opened.locator("#view-title").text_content()
    for tile in opened.locator(".tile").all():
        file = tile.get_by_role("link", name="Maps (npz)").get_attribute("href")
        explanation = Explanation.load(tmp_path / "out" / file)
        assert explanation.photo.name.endswith(name)
        column, row = map(int, tile.locator(".reading dd").first.text_content().split(", "))
        shown = float(tile.locator(".reading dd[data-value]").first.get_attribute("data-value"))
        reach = (explanation.importance.max() - explanation.importance.min()).item()
        assert abs(shown - explanation.importance[row, column].item()) <= 0.51 * reach / 65534
    assert opened.locator(".tile").count() == 2
