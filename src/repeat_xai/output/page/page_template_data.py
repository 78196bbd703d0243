"""What a page shows → its HTML, piece by piece; images are asked for one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, final

from repeat_xai.output.page.histogram_chart import HEIGHT, WIDTH, Chart
from repeat_xai.output.page.pictures import colour_tables
from repeat_xai.output.page.template import filled
from repeat_xai.output.page.view import Link, View

SCRIPTS = ("theme", "numbers", "colours", "histogram", "export", "tile", "view", "gallery", "start")
Kind = Literal["explain", "screen", "notebook"]


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """One image in the gallery."""

    name: str
    thumbnail: str
    href: str
    """Its view, or where it has none its panel."""
    uncertainty: float
    unknown: float | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Content:
    """All of one image, unpacked only when it is looked at."""

    name: str
    photo: str
    size: tuple[int, int]
    box: tuple[float, float, float, float]
    facts: Sequence[str]
    views: Sequence[View]
    links: Sequence[Link] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything on it."""

    kind: Kind
    title: str
    lead: str
    statement: str = ""
    notes: Sequence[str] = ()
    cards: Sequence[Card] = ()
    contents: Iterable[Content]
    """Of the first cards, in their order."""
    chart: Chart | None = None


def html(page: Page) -> Iterator[str]:
    """The page as text."""
    return filled(
        "page.html",
        SCRIPTS,
        {
            "page": page,
            "contents": (asdict(content) for content in page.contents),
            "colours": colour_tables(),
            "chart_size": (WIDTH, HEIGHT),
            "shown": "uncertainty" if page.kind == "screen" else "importance",
        },
    )
