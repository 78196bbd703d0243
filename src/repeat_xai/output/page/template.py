"""Templates are filled into pages of one file, which hold their style and scripts and whose policy forbids all else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from repeat_xai.version import __version__

GENERATOR = "repeat-xai"
"""The program that a page names as its maker; a page without it is the user's own."""


def fill_template(template: str, scripts: Sequence[str], context: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page's HTML piece by piece, with the scripts of these names in it."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "allow_nan": False}
    style = _asset("style.css")
    script = '"use strict";\n' + "\n".join(_asset(f"{name}.js") for name in scripts)
    about = {
        "generator": f"{GENERATOR} {__version__}",
        "style": Markup(style),
        "script": Markup(script),
        "policy": f"default-src 'none'; img-src data: blob:; style-src {_digest(style)}; script-src {_digest(script)}",
    }
    yield from environment.from_string(_asset(template)).generate({**about, **context})


def _asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return files("repeat_xai.output.page").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the digest by which the page's policy allows this text to run, and no script that a file name may hold."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
