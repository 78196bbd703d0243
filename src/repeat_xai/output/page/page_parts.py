"""The parts of a page of images as data, and the page's HTML, which is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, final

from repeat_xai.output.page.histogram_chart import HEIGHT, WIDTH, Chart
from repeat_xai.output.page.method_view import Link, MethodView
from repeat_xai.output.page.pictures import colour_tables
from repeat_xai.output.page.template import fill_template

SCRIPTS = (
    "theme",
    "map_decoding",
    "colours",
    "histogram",
    "export",
    "method_view",
    "image_view",
    "gallery",
    "navigation",
)
"""Scripts of the page, each after those that it needs."""
PageKind = Literal["explain", "screen", "notebook"]


class FailedImage(NamedTuple):
    """An image that could not be explained."""

    image: str
    reason: str


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """One image in the gallery."""

    name: str
    thumbnail: str
    """The photo beside its map, as a data URL."""
    href: str
    """The link to the image's view on the page, or to its panel if it has no view."""
    summary: str = ""
    """The shares of certainly important and undecided pixels, in words."""
    uncertainty: float | None
    """The image's uncertainty in one number; None if the method gives none."""
    uncertainty_limit: float | None = None
    """The largest value that this number can have; None if it is not known."""
    in_higher_group: float | None = None
    """Probability that the image belongs to the more uncertain of two groups."""


@final
@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything the page shows of one image. The browser decodes it only when the image is opened."""

    name: str
    photo: str
    """The photo as a data URL."""
    size: tuple[int, int]
    """Height and width of the photo's file, in pixels."""
    box: tuple[float, float, float, float]
    """Left, top, right and bottom of the part that the encoder sees, in pixels of the photo's file."""
    facts: Sequence[str]
    views: Sequence[MethodView]
    links: Sequence[Link] = ()


@final
@dataclass(frozen=True, kw_only=True)
class ImagesPage:
    """Everything on a page of images."""

    kind: PageKind
    title: str
    """What the browser's tab shows."""
    question: str = ""
    """The heading: what the page answers."""
    lead: str = ""
    """How many images were explained, and how."""
    level: float
    """Share of votes from which on a verdict is certain."""
    statement: str = ""
    """What the scores of all images together say."""
    notes: Sequence[str] = ()
    cards: Sequence[Card] = ()
    contents: Sequence[Content]
    """The contents of the first cards, in their order."""
    failures: Sequence[FailedImage] = ()
    chart: Chart | None = None


def page_html(page: ImagesPage) -> Iterator[str]:
    """Yield the page's HTML piece by piece."""
    return fill_template(
        "images_page.html",
        SCRIPTS,
        {
            "page": page,
            "contents": (asdict(content) for content in page.contents),
            "colours": colour_tables(),
            "chart_size": (WIDTH, HEIGHT),
            "shown_layer": "uncertainty" if page.kind == "screen" else "importance",
        },
    )
