"""Figures are saved as PNG, PDF or SVG, whole or not at all, and draw any name without warnings."""

import warnings

import pytest
from matplotlib.figure import Figure

import repeat_xai as rx
from repeat_xai.output.figures import save_figure
from repeat_xai.output.figures.figure_files import SilentFigure

STARTS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}
UNUSUAL = "猫 😀 שלום नमस्ते.png"


def titled(kind, title="a title"):
    figure = kind(figsize=(2, 1), layout="constrained")
    figure.suptitle(title, parse_math=False)
    return figure


@pytest.mark.parametrize("suffix", [*STARTS, ".PNG"])
def test_the_suffix_decides_the_format_and_the_same_figure_gives_the_same_bytes(suffix, tmp_path):
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        save_figure(titled(Figure), path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(STARTS[suffix.lower()])
    assert first == second
    assert sorted(tmp_path.iterdir()) == paths


def test_a_pdf_has_truetype_fonts_and_no_type_3_fonts(tmp_path):
    save_figure(titled(Figure), str(tmp_path / "a.pdf"))
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_metadata_is_written(tmp_path):
    save_figure(titled(Figure), tmp_path / "a.png", metadata={"Source": "a photo"})
    save_figure(titled(Figure), tmp_path / "a.pdf", metadata={"Title": "A photo"})
    assert b"a photo" in (tmp_path / "a.png").read_bytes()
    assert b"A photo" in (tmp_path / "a.pdf").read_bytes()


@pytest.mark.parametrize("name", ["a.jpg", "a", ".png", "a.png.gz"])
def test_other_suffixes_are_refused_in_one_line(name, tmp_path):
    with pytest.raises(rx.RepeatError, match=r"\.png, \.pdf or \.svg") as refused:
        save_figure(titled(Figure), tmp_path / name)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_cannot_be_drawn_leaves_the_old_file_in_place(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"the old file")
    figure = Figure()
    figure.text(0, 0, r"$\frac$")
    with pytest.raises(ValueError, match="frac"):
        save_figure(figure, path)
    assert path.read_bytes() == b"the old file"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Figure, SilentFigure])
@pytest.mark.parametrize("suffix", STARTS)
def test_letters_without_a_glyph_are_saved_without_warnings(kind, suffix, tmp_path):
    save_figure(titled(kind, UNUSUAL), tmp_path / f"a{suffix}")  # any warning is an error in these tests


def test_a_silent_figure_draws_such_letters_without_warnings_in_a_notebook_too():
    figure = titled(SilentFigure, f"in a notebook: {UNUSUAL}")  # a text of its own: layouts are cached
    figure.canvas.draw()


@pytest.mark.parametrize("kind", [Figure, SilentFigure])
def test_other_warnings_still_reach_the_user(kind, tmp_path):
    def warn(image, dpi):
        warnings.warn("Glyph of the day", stacklevel=1)
        return image, 0, 0

    figure = titled(kind)
    figure.text(0, 0, "a").set_agg_filter(warn)
    with pytest.warns(UserWarning, match="Glyph of the day"):
        save_figure(figure, tmp_path / "a.png")
