"""The parts of the page that are written as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup, escape

from repeat_xai.app.job_state import JobState
from repeat_xai.app.photos import MAX_PHOTO_BYTES, ChosenPhoto, sample_photo
from repeat_xai.output.page.pictures import photo_url

PHOTO_SIDE = 320
"""Longest side of the chosen photo, in pixels."""
SAMPLE_SIDE = 200
"""Longest side of a sample photo, in pixels."""
HEADER = """
<header id="head"><p>repeat-xai</p>
<h1>Which pixels of a photo does an encoder’s representation depend on, and how sure are we that each one matters?</h1>
</header>
"""
START_HINT = """
<div class="status"><p>Upload a photo or pick a sample, then press Explain.</p></div>
"""


def photo_figure(chosen: ChosenPhoto) -> str:
    """Return the chosen photo with its name and size."""
    height, width = chosen.photo.size
    return Markup(
        '<figure class="given"><img alt="" src="{}"><figcaption>{} <small>{}×{} pixels</small></figcaption></figure>'
    ).format(photo_url(chosen.photo, longest=PHOTO_SIDE), chosen.name, width, height)


def upload_field() -> str:
    """Return the field in which a photo is chosen or dropped; a script uploads it."""
    return Markup(
        '<div class="upload" data-max-bytes="{}"><label><input type="file" accept="image/*">'
        "<span>Drop a photo here, or <u>choose one</u></span></label>"
        '<p class="note" role="status" hidden></p></div>'
    ).format(MAX_PHOTO_BYTES)


def sample_buttons(names: Sequence[str]) -> str:
    """Return a button for each sample photo."""
    buttons = (
        Markup('<button type="button" title="{0}"><img alt="{0}" src="{1}"></button>').format(
            name, photo_url(sample_photo(name).photo, longest=SAMPLE_SIDE)
        )
        for name in names
    )
    group = '<p class="label" id="samples-label">Or pick a sample</p><div class="samples" role="group" {}>{}</div>'
    return Markup(group).format(Markup('aria-labelledby="samples-label"'), Markup("").join(buttons))


def status_box(state: JobState) -> str:
    """Return how far the job is, with a progress bar until it ends, and the warnings that it raised."""
    bar = ""
    if state.end is None:
        share = Markup(' value="{}" max="{}"').format(state.calls, max(state.max_calls or 1, state.calls))
        bar = Markup('<progress aria-label="Encoder calls"{}></progress>').format(share if state.calls else "")
    notes = Markup("").join(Markup('<p class="note">{}</p>').format(note) for note in state.notes)
    message = Markup("<p>{}</p>").format(_status_text(state))
    return Markup('<div class="status" data-end="{}">{}{}{}</div>').format(state.end or "", bar, message, notes)


def _status_text(state: JobState) -> str:
    """Return the state's message, and what the job cost once it is done."""
    if state.end != "done":
        return state.message
    calls = sum(explanation.provenance["encoder_calls"] for explanation in state.explanations)
    seconds = sum(explanation.provenance["seconds"] for explanation in state.explanations)
    return f"Done: {calls:,} encoder calls in {seconds:.1f} s"


def refusal(message: object) -> str:
    """Return the reason why a request was refused."""
    return Markup('<div class="status" data-end="refused"><p class="note">{}</p></div>').format(message)


def download_links(files: Sequence[tuple[str, str]]) -> str:
    """Return links to the files of a job, given as label and path."""
    links = (
        Markup('<span><a download href="results/{}">{}</a> {}</span>').format(
            quote(path), path.rpartition("/")[2], label
        )
        for label, path in files
    )
    return Markup('<p class="downloads">Download {}</p>').format(Markup(" ").join(links))


def snippet_boxes(command: str, python: str) -> str:
    """Return the command and the script in boxes with buttons that copy them."""
    title, button = Markup("<h2>{}</h2>"), Markup('<button type="button" aria-label="Copy {}">Copy</button>')
    # A line that is too long is broken only between the words of the command, and not at hyphens in them.
    unbroken_words = Markup(re.sub(r"\S+", r"<span>\g<0></span>", str(escape(command))))
    return Markup("").join(
        title.format(name) + Markup('<div class="snippet">{}<pre>{}</pre></div>').format(button.format(name), text)
        for name, text in (("Command", unbroken_words), ("Python", python))
    )
