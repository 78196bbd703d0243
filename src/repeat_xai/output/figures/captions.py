"""Captions of explanations: which photo, by which encoder and method, and from how many masks or passes."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import Any

from repeat_xai.methods.method_names import METHODS
from repeat_xai.types import Explanation, Photo

TITLES: dict[str, str] = {type(method).__name__: method.title for method in METHODS.values()}
"""Titles of methods by the names of their classes; a method that is not here is called by its class."""


def title(explanation: Explanation) -> str:
    """Return the title of the method, such as `REPEAT` or `REPEAT over Kernel SHAP`."""
    method = explanation.provenance["method"]
    outer, inner = method_title(method), method_title(method.get("base", ""))
    if method["name"] == "Spread":
        return inner
    return outer if inner in ("", "RELAX") else f"{outer} over {inner}"


def subject(explanation: Explanation) -> str:
    """Return the names of the photo, of the image that it is matched with, if any, and of the encoder."""
    other = explanation.provenance.get("target")
    toward = f" toward {_cut(other['name'], 60)}" if isinstance(other, dict) and "name" in other else ""
    return f"{short_name(explanation.photo, 60)}{toward}  ·  {explanation.provenance['encoder']['name']}"


def short_name(photo: Photo, longest: int) -> str:
    """Return the photo's file name in one line, cut where it has more letters than `longest`."""
    return _cut(photo.name, longest)


def _cut(path: str, longest: int) -> str:
    """Return the last part of a path in one line, cut where it has more letters than `longest`."""
    name = Path(path).name.encode(errors="replace").decode()
    return shorten(name, longest, placeholder="…") or f"{name[:longest]}…"


def caption(explanation: Explanation) -> str:
    """Return photo, encoder, method and budget in one line."""
    return "  ·  ".join((subject(explanation), title(explanation), *budget(explanation)))


def movement(explanation: Explanation) -> str:
    """Return how far hiding parts changes the code, with a warning where that is very little; "" if not measured."""
    if explanation.code_movement is None:
        return ""
    sentence = f"Hiding parts of the photo changes the code by {100 * explanation.code_movement:.2g} % on average"
    if explanation.is_of_flat_photo:
        return f"{sentence}; the photo is nearly a single colour, so these maps show the masks more than the photo"
    warning = ": very little, so these maps say little about the photo" if explanation.hardly_moves else ""
    return sentence + warning


def budget(explanation: Explanation) -> list[str]:
    """Return how many repeats, passes, masks, samples or steps the method made."""
    provenance = explanation.provenance
    method = provenance["method"]
    base = method.get("base", method)
    if "budget" in provenance:
        masks, asked = provenance["budget"]["masks"], provenance["budget"].get("asked")
        rounded = f" ({asked} asked for, rounded up to whole blocks)" if asked else ""
        return [f"estimated from {masks} masks{rounded}"]
    options = method | (base if isinstance(base, dict) else {})
    return [f"{kind} {options[kind]}" for kind in ("repeats", "passes", "masks", "samples", "steps") if kind in options]


def method_title(method: dict[str, Any] | str) -> str:
    """Return the title of a method from its configuration, without that of its base."""
    name = method if isinstance(method, str) else method["name"]
    if isinstance(method, dict) and method.get("moment") == "variance":
        return "VarGrad"
    target = " to a reference" if isinstance(method, dict) and method.get("reference") else ""
    return TITLES.get(name, name) + target
