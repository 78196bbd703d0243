"""How a notebook shows an explanation: as a page in a frame, or as a picture where pages cannot be shown."""

from __future__ import annotations

from io import BytesIO

from markupsafe import escape

from repeat_xai.output.figures.captions import caption, short_name
from repeat_xai.output.figures.explanation_figures import panel
from repeat_xai.output.page.method_view import method_view
from repeat_xai.output.page.page_parts import Content, ImagesPage, page_html
from repeat_xai.output.page.pictures import photo_url
from repeat_xai.types import Explanation

VERDICT_LEVEL = 0.95
"""Share of votes from which on a verdict is certain."""
MAX_PHOTO_SIDE = 1024
"""The longer side of the photo, in pixels."""
FRAME_HEIGHT = 640
"""Height of the frame, in pixels."""


def frame(explanation: Explanation) -> str:
    """Return the explanation's page in an HTML frame, so that its style and its script do not affect the notebook."""
    photo = explanation.photo
    content = Content(
        name=short_name(photo, 60),
        photo=photo_url(photo, longest=MAX_PHOTO_SIDE),
        size=photo.size,
        box=photo.box,
        facts=(),
        views=[method_view(explanation, level=VERDICT_LEVEL, provenance=explanation.provenance)],
    )
    page = ImagesPage(kind="notebook", title=content.name, level=VERDICT_LEVEL, contents=[content])
    title, document = escape(caption(explanation)), escape("".join(page_html(page)))
    style = f"width: 100%; height: {FRAME_HEIGHT}px; border: 0"
    return f'<iframe title="{title}" style="{style}" srcdoc="{document}"></iframe>'


def picture(explanation: Explanation) -> bytes:
    """Return the panel as PNG, for programs that show no pages, such as a notebook exported to PDF."""
    png = BytesIO()
    panel(explanation, level=VERDICT_LEVEL).savefig(png, format="png", dpi=100)
    return png.getvalue()
