"""Captions of explanations: which photo, by which encoder and method, and from how many masks or passes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from repeat_xai.methods.method_names import METHODS
from repeat_xai.types import Explanation, Photo


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


class MovementNote(NamedTuple):
    """How far hiding parts of a photo changes its code, in words."""

    fact: str = ""
    """The change in per cent; empty where it was not measured."""
    warning: str = ""
    """Why the maps say little about the photo; empty where nothing speaks against them."""

    def __str__(self) -> str:
        text = "; ".join(filter(None, self))
        return text[:1].upper() + text[1:]


def movement(explanation: Explanation) -> MovementNote:
    """Return how far hiding parts changes the code, with a warning where the maps say little about the photo.

    Panel, page and command show these words.
    """
    moved = explanation.code_movement
    fact = "" if moved is None else f"Hiding parts of the photo changes the code by {100 * moved:.2g}\u00a0% on average"
    if explanation.is_of_flat_photo:
        return MovementNote(fact, "the photo is nearly a single colour, so these maps say little about it")
    if explanation.hardly_moves:
        return MovementNote(fact, "that is very little (10 to 40 % is usual), so these maps say little about the photo")
    return MovementNote(fact)


def budget(explanation: Explanation) -> list[str]:
    """Return how many repeats, passes, masks, samples or steps the method made."""
    provenance = explanation.provenance
    method = provenance["method"]
    base = method.get("base", method)
    if "budget" in provenance:
        return [f"estimated from {provenance['budget']['masks']} masks{rounding(provenance)}"]
    options = method | (base if isinstance(base, dict) else {})
    return [f"{kind} {options[kind]}" for kind in ("repeats", "passes", "masks", "samples", "steps") if kind in options]


def rounding(provenance: Mapping[str, Any]) -> str:
    """Return in brackets which budget was asked for, where it was rounded up; otherwise nothing."""
    asked = provenance.get("budget", {}).get("asked")
    return f" ({asked} asked for, rounded up to whole blocks)" if asked else ""


def method_title(method: dict[str, Any] | str) -> str:
    """Return the title of a method from its configuration, without that of its base."""
    name = method if isinstance(method, str) else method["name"]
    if isinstance(method, dict) and method.get("moment") == "variance":
        return "VarGrad"
    target = " toward a target" if isinstance(method, dict) and method.get("target") else ""
    return title_of_class(name) + target


def title_of_class(name: str) -> str:
    """Return the title of the registered method whose class has this name; without one, the name of the class.

    Methods are looked up at every call, because users may register theirs at any time, and with or without a title.
    """
    for method in METHODS.values():
        if type(method).__name__ == name:
            return str(getattr(method, "title", name))
    return name
