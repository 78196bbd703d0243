"""Explanations in words: what was explained, how, and from how much."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import Any

from repeat_xai.types import Explanation, Photo

TITLES = {
    "Repeat": "REPEAT",
    "Relax": "RELAX",
    "GuidedBackprop": "Guided backpropagation",
    "IntegratedGradients": "Integrated gradients",
    "InputXGradient": "Input × gradient",
    "GradientShap": "GradientSHAP",
    "KernelShap": "Kernel SHAP",
    "Lime": "LIME",
}


def title(explanation: Explanation) -> str:
    """The method in words, such as `REPEAT` or `REPEAT over Kernel SHAP`."""
    method = explanation.provenance["method"]
    outer, inner = method_title(method), method_title(method.get("base", ""))
    if method["name"] == "Spread":
        return inner
    return outer if inner in ("", "RELAX") else f"{outer} over {inner}"


def subject(explanation: Explanation) -> str:
    """Which photo, and by which encoder."""
    return f"{short_name(explanation.photo, 60)}  ·  {explanation.provenance['encoder']['name']}"


def short_name(photo: Photo, longest: int) -> str:
    """The photo's file name in one line, cut where it is longer."""
    name = Path(photo.name).name.encode(errors="replace").decode()
    return shorten(name, longest, placeholder="…") or f"{name[:longest]}…"


def caption(explanation: Explanation) -> str:
    """All of it in one line."""
    return "  ·  ".join((subject(explanation), title(explanation), *budget(explanation)))


def budget(explanation: Explanation) -> list[str]:
    """What the method was given to work with."""
    made = explanation.provenance
    method = made["method"]
    base = method.get("base", method)
    if "budget" in made:
        asked = made["budget"].get("asked")
        rounded = f" ({asked} asked for, rounded up to whole blocks)" if asked else ""
        return [f"estimated from {made['budget']['masks']} masks{rounded}"]
    given = method | (base if isinstance(base, dict) else {})
    return [f"{kind} {given[kind]}" for kind in ("repeats", "passes", "masks", "samples", "steps") if kind in given]


def method_title(method: dict[str, Any] | str) -> str:
    """Return the title of a method from its configuration, without that of its base."""
    name = method if isinstance(method, str) else method["name"]
    if isinstance(method, dict) and method.get("moment") == "variance":
        return "VarGrad"
    against = " to a reference" if isinstance(method, dict) and method.get("reference") else ""
    return TITLES.get(name, name) + against
