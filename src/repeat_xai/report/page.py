"""What a page shows → its HTML, piece by piece; images are asked for one at a time."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Literal, final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from repeat_xai.report.chart import HEIGHT, WIDTH, Chart
from repeat_xai.report.pictures import colour_tables
from repeat_xai.report.view import Link, View
from repeat_xai.version import __version__

GENERATOR = "repeat-xai"
SCRIPTS = ("numbers", "colours", "histogram", "export", "tile", "view", "gallery", "start")
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
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "allow_nan": False}
    style = _asset("style.css")
    script = '"use strict";\n' + "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    yield from environment.from_string(_asset("page.html")).generate(
        page=page,
        contents=(asdict(content) for content in page.contents),
        colours=colour_tables(),
        generator=f"{GENERATOR} {__version__}",
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; img-src data: blob:; style-src {_digest(style)}; script-src {_digest(script)}",
        chart_size=(WIDTH, HEIGHT),
        shown="uncertainty" if page.kind == "screen" else "importance",
    )


def _asset(name: str) -> str:
    return files("repeat_xai.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Only this very text may run: a name with a script in it could not, even if it came through as one."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
