"""Explanations of one photo → pages to look into them side by side, and files to keep."""

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

LEVEL = 0.95
LONGEST = 1024
DRAWING = threading.Lock()
"""Matplotlib draws one figure at a time."""
KINDS = (("maps", "npz"), ("panel", "png"))


def pages(explanations: Sequence[Explanation], *, so_far: bool) -> Iterator[str]:
    """One page for all that see the same part of the photo, where a pixel is read in all of them at once."""
    names = encoders(explanations)
    shown = []
    for one, name in zip(explanations, names, strict=True):
        part = method_view(one, level=LEVEL, provenance=one.provenance)
        called = part.title if len(set(names)) == 1 else f"{part.title} · {name}"
        early = so_far and one is explanations[-1]
        shown.append((one.photo, replace(part, title=called, budget=f"so far {part.budget}" if early else part.budget)))
    for _, group in groupby(shown, key=lambda pair: (pair[0].size, pair[0].box)):
        photos, views = zip(*group, strict=True)
        content = Content(
            name=short_name(photos[0], 60),
            photo=photo_url(photos[0], longest=LONGEST),
            size=photos[0].size,
            box=photos[0].box,
            facts=names[:1] if len(set(names)) == 1 else (),
            views=views,
        )
        yield "".join(page_html(ImagesPage(kind="notebook", title=content.name, level=LEVEL, contents=[content])))


def encoders(explanations: Sequence[Explanation]) -> list[str]:
    """What the encoder of each is called, with its weights where that alone does not tell them apart."""
    made = [(one.provenance["encoder"]["name"], one.provenance["encoder"]["weights"]) for one in explanations]
    often = Counter(name for name, _ in set(made))
    return [f"{name}, {weights}" if often[name] > 1 else name for name, weights in made]


def save(explanations: Sequence[Explanation], folder: Path) -> list[tuple[str, Path]]:
    """Maps and panels, and what they are called; all methods of one encoder side by side as well."""
    stem = Path(explanations[0].photo.name).stem
    names, files = encoders(explanations), []
    for number, (one, name) in enumerate(zip(explanations, names, strict=True), start=1):
        several = len(explanations) > 1
        place = folder / (f"{stem}-{number}" if several else stem)
        by = f" by {name}" if len(set(names)) > 1 else ""
        about = f"{title(one)}{by}: " if several else ""
        one.save(place.with_name(f"{place.name}.npz"))
        with DRAWING:
            draw(panel(one, level=LEVEL), place.with_name(f"{place.name}.png"))
        files += [(f"{about}{kind}", place.with_name(f"{place.name}.{end}")) for kind, end in KINDS]
    if len(explanations) > 1 and len(set(names)) == 1:
        beside = folder / f"{stem}.comparison.png"
        with DRAWING:
            draw(comparison(explanations), beside)
        files.append(("side by side", beside))
    return files
