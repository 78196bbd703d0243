"""An explanation as a notebook shows it."""

from __future__ import annotations

from io import BytesIO

from markupsafe import escape

from repeat_xai.output.figures.captions import caption, short_name
from repeat_xai.output.figures.explanation_figures import panel
from repeat_xai.output.page.page_template_data import Content, Page, html
from repeat_xai.output.page.pictures import photo_url
from repeat_xai.output.page.view import view
from repeat_xai.types import Explanation

LEVEL = 0.95
LONGEST = 1024
HEIGHT = 640
"""Of the frame, in pixels."""


def frame(explanation: Explanation) -> str:
    """The page in a frame of its own, so that neither its style nor its script meets the notebook's."""
    photo, made = explanation.photo, explanation.provenance
    content = Content(
        name=short_name(photo, 60),
        photo=photo_url(photo, longest=LONGEST),
        size=photo.size,
        box=photo.box,
        facts=(),
        views=[view(explanation, level=LEVEL, provenance=made)],
    )
    page = Page(kind="notebook", title=content.name, lead="", contents=[content])
    words, document = escape(caption(explanation)), escape("".join(html(page)))
    return f'<iframe title="{words}" style="width: 100%; height: {HEIGHT}px; border: 0" srcdoc="{document}"></iframe>'


def picture(explanation: Explanation) -> bytes:
    """The panel as PNG, for whatever shows no pages, such as a notebook made into a PDF."""
    png = BytesIO()
    panel(explanation, level=LEVEL).savefig(png, format="png", dpi=100)
    return png.getvalue()
