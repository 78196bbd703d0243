"""The pages and files that a job makes of its explanations."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from repeat_xai.output.figures import comparison, panel, title
from repeat_xai.output.figures.captions import short_name
from repeat_xai.output.page.method_view import method_view
from repeat_xai.output.page.page_parts import Content, ImagesPage, page_html
from repeat_xai.output.page.pictures import photo_url
from repeat_xai.output.results_folder import draw
from repeat_xai.types import Explanation

VERDICT_LEVEL = 0.95
MAX_PHOTO_SIDE = 1024
"""Longest side of the photo on a page, in pixels."""
DRAWING_LOCK = threading.Lock()
"""Held while a figure is drawn, because matplotlib is not thread-safe."""


def result_pages(explanations: Sequence[Explanation], *, is_preview: bool) -> Iterator[str]:
    """Yield one page for all explanations that see the same part of the photo, so that a pixel is read in all of them.

    With `is_preview`, the last explanation is marked as one that is not finished.
    """
    labels = encoder_labels(explanations)
    views = []
    for explanation, label in zip(explanations, labels, strict=True):
        part = method_view(explanation, level=VERDICT_LEVEL, provenance=explanation.provenance)
        name = part.title if len(set(labels)) == 1 else f"{part.title} · {label}"
        unfinished = is_preview and explanation is explanations[-1]
        budget = f"preview: {part.budget} so far" if unfinished else part.budget
        views.append((explanation.photo, replace(part, title=name, budget=budget)))
    for _, group in groupby(views, key=lambda pair: (pair[0].size, pair[0].box)):
        photos, views_of_photo = zip(*group, strict=True)
        content = Content(
            name=short_name(photos[0], 60),
            photo=photo_url(photos[0], longest=MAX_PHOTO_SIDE),
            size=photos[0].size,
            box=photos[0].box,
            facts=labels[:1] if len(set(labels)) == 1 else (),
            views=views_of_photo,
        )
        yield "".join(
            page_html(ImagesPage(kind="notebook", title=content.name, level=VERDICT_LEVEL, contents=[content]))
        )


def encoder_labels(explanations: Sequence[Explanation]) -> list[str]:
    """Return the name of each explanation's encoder, followed by its weights if another has the same name."""
    records = (explanation.provenance["encoder"] for explanation in explanations)
    encoders = [(record["name"], record["weights"]) for record in records]
    encoders_of_name = Counter(name for name, _ in set(encoders))
    return [f"{name}, {weights}" if encoders_of_name[name] > 1 else name for name, weights in encoders]


def save_files(explanations: Sequence[Explanation], folder: Path) -> list[tuple[str, Path]]:
    """Write the maps and the panel of each explanation, and return the files with their labels.

    If all explanations have the same encoder, a figure with all of them side by side is written as well.
    """
    stem = Path(explanations[0].photo.name).stem
    labels, files = encoder_labels(explanations), []
    several = len(explanations) > 1
    for number, (explanation, label) in enumerate(zip(explanations, labels, strict=True), start=1):
        path = folder / (f"{stem}-{number}" if several else stem)
        by_encoder = f" with {label}" if len(set(labels)) > 1 else ""
        prefix = f"{title(explanation)}{by_encoder}: " if several else ""
        maps_file, panel_file = path.with_name(f"{path.name}.npz"), path.with_name(f"{path.name}.png")
        explanation.save(maps_file)
        with DRAWING_LOCK:
            draw(panel(explanation, level=VERDICT_LEVEL), panel_file)
        files += [(f"{prefix}maps", maps_file), (f"{prefix}panel", panel_file)]
    if several and len(set(labels)) == 1:
        comparison_file = folder / f"{stem}.comparison.png"
        with DRAWING_LOCK:
            draw(comparison(explanations), comparison_file)
        files.append(("side by side", comparison_file))
    return files
