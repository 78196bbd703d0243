"""Figures that draw any file name without warnings, and the one function that writes a figure to a file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from matplotlib import rc_context
from matplotlib.figure import Figure

from repeat_xai.errors import ConfigurationError
from repeat_xai.files.atomic import writing

UNDATED: Mapping[str, Mapping[str, None]] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
"""The file formats by suffix, with the dates that are left out so that the same figure gives the same bytes."""
RESOLUTIONS = {".png": 150, ".pdf": 300, ".svg": 300}
"""Dots per inch: of the whole figure in a PNG, of the photos and maps inside a PDF or an SVG."""
NO_GLYPH = r"Glyph \d+ .*missing from .*font|Matplotlib currently does not support \w+ natively"
"""Matplotlib's warnings of a letter that a font cannot draw, such as a Chinese one in the name of a photo."""


@final
class SilentFigure(Figure):
    """A figure that draws an empty box for a letter its font lacks, without a warning that no user can act on."""

    def draw(self, renderer: Any) -> None:
        """Draw the figure."""
        with without_glyph_warnings():
            super().draw(renderer)


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Ignore warnings of letters that a font lacks, and no other warnings, inside the block."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NO_GLYPH, category=UserWarning)
        yield


def save_figure(
    figure: Figure, path: str | Path, *, dpi: int | None = None, metadata: Mapping[str, str | None] | None = None
) -> None:
    """Write a figure as PNG, PDF or SVG, whichever the suffix of the path names.

    The file appears whole or not at all. `dpi` is 150 for a PNG if not given, and 300 for the photos and maps inside a
    PDF or an SVG. `metadata` holds the texts that the format knows, such as `Title` in a PDF.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in UNDATED:
        raise ConfigurationError(f"{path}: a figure is saved as .png, .pdf or .svg; end the path with one of them")
    texts = {**UNDATED[suffix], **(metadata or {})}
    # 42 is TrueType: journals refuse PDFs with Type 3 fonts; the salt makes the same figure the same SVG each time
    settings = rc_context({"pdf.fonttype": 42, "svg.hashsalt": "repeat-xai"})
    with writing(path) as draft, settings, without_glyph_warnings():
        figure.savefig(draft, format=suffix[1:], dpi=dpi or RESOLUTIONS[suffix], metadata=texts)
