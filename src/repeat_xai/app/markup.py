"""What the app says, as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup, escape

from repeat_xai.app.job import State
from repeat_xai.app.photos import MOST_BYTES, Given, sample
from repeat_xai.output.page.pictures import photo_url

HEAD = """
<header id="head"><h1>repeat-xai</h1>
<p>Which pixels does an encoder’s representation of a photo depend on, and how sure are we that each one matters?</p>
</header>
"""
EMPTY = """
<div class="status"><p>Upload a photo or pick a sample, then press Explain.</p></div>
"""


def photo(given: Given) -> str:
    """The photo that will be explained."""
    height, width = given.photo.size
    return Markup(
        '<figure class="given"><img alt="" src="{}"><figcaption>{} <small>{}×{}</small></figcaption></figure>'
    ).format(photo_url(given.photo, longest=320), given.name, width, height)


def upload() -> str:
    """Return the field that a photo is dropped on or chosen by; a script sends it."""
    return Markup(
        '<div class="upload" data-most="{}"><label><input type="file" accept="image/*">'
        "<span>Drop a photo here, or <u>choose one</u></span></label>"
        '<p class="note" role="status" hidden></p></div>'
    ).format(MOST_BYTES)


def samples(names: Sequence[str]) -> str:
    """A button for each photo that comes with the app."""
    buttons = (
        Markup('<button type="button" title="{0}"><img alt="{0}" src="{1}"></button>').format(
            name, photo_url(sample(name).photo, longest=200)
        )
        for name in names
    )
    return Markup('<div class="samples" role="group" aria-label="Samples">{}</div>').format(Markup("").join(buttons))


def status(state: State) -> str:
    """How far the work is."""
    bar = ""
    if state.end is None:
        share = Markup(' value="{}" max="{}"').format(state.calls, max(state.most or 1, state.calls))
        bar = Markup('<progress aria-label="Encoder calls"{}></progress>').format(share if state.calls else "")
    notes = Markup("").join(Markup('<p class="note">{}</p>').format(note) for note in state.notes)
    words = Markup("<p>{}</p>").format(ended(state))
    return Markup('<div class="status" data-end="{}">{}{}{}</div>').format(state.end or "", bar, words, notes)


def ended(state: State) -> str:
    """What is said of it, with what it cost once it is done."""
    if state.end != "done":
        return state.said
    calls = sum(one.provenance["encoder_calls"] for one in state.found)
    seconds = sum(one.provenance["seconds"] for one in state.found)
    return f"Done: {calls:,} encoder calls in {seconds:.1f} s"


def refused(words: object) -> str:
    """Why something is not done."""
    return Markup('<div class="status" data-end="refused"><p class="note">{}</p></div>').format(words)


def downloads(files: Sequence[tuple[str, str]]) -> str:
    """Links to what can be kept."""
    links = (
        Markup('<span><a download href="results/{}">{}</a> {}</span>').format(
            quote(address), address.rpartition("/")[2], label
        )
        for label, address in files
    )
    return Markup('<p class="downloads">{}</p>').format(Markup(" ").join(links))


def words(command: str, python: str) -> str:
    """What can be copied; a command is broken between its words only."""
    title, button = Markup("<h3>{}</h3>"), Markup('<button type="button" aria-label="Copy {}">Copy</button>')
    whole = Markup(re.sub(r"\S+", r"<span>\g<0></span>", str(escape(command))))
    return Markup("").join(
        title.format(name) + Markup('<div class="words">{}<pre>{}</pre></div>').format(button.format(name), text)
        for name, text in (("Command", whole), ("Python", python))
    )
