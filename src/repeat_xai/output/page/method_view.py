"""What the page shows of one explanation: its layers, its maps, a summary in words, and how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from repeat_xai.output.figures.captions import budget, movement, title
from repeat_xai.output.page.file_names import file_name
from repeat_xai.output.page.layers import Layer, layers
from repeat_xai.output.page.map_encoding import EncodedMap, encoded
from repeat_xai.types import Explanation

ROUNDING = 1e-6
"""Uncertainty that equals p(1 − p) up to this is not stored in the page, which computes it from p."""


@final
@dataclass(frozen=True, kw_only=True)
class Link:
    """A link to a file beside the page."""

    label: str
    href: str


@final
@dataclass(frozen=True, kw_only=True)
class MethodView:
    """What the page shows of one method's explanation of a photo."""

    title: str
    budget: str
    summary: str
    """One sentence on the whole photo."""
    movement: str
    """How far masking moves the code, in words; empty if it was not measured."""
    warns: bool
    """Whether the code moves so little that a reader is to be warned."""
    layers: tuple[Layer, Layer, Layer]
    maps: Mapping[str, EncodedMap]
    """Maps by name; `uncertainty` is left out where it is p(1 − p)."""
    provenance: tuple[tuple[str, str], ...]
    links: Sequence[Link]


def method_view(
    explanation: Explanation, *, level: float, provenance: Mapping[str, Any], links: Sequence[Link] = ()
) -> MethodView:
    """Return what the page shows of an explanation, with verdicts at this share of the votes."""
    note = movement(explanation)
    return MethodView(
        title=title(explanation),
        budget=" · ".join(budget(explanation)),
        summary=_summary(explanation, level),
        movement=f"{note}." if any(note) else "",
        warns=bool(note.warning),
        layers=layers(explanation, level=level),
        maps={name: encoded(values) for name, values in _maps(explanation, level)},
        provenance=tuple(_provenance_rows(provenance)),
        links=tuple(links),
    )


def verdict_summary(explanation: Explanation, level: float) -> str:
    """Return the shares of certainly important and of undecided pixels; nothing for a method without votes."""
    if explanation.vote_share is None:
        return ""
    verdict = explanation.verdict(level)
    return f"{_percent(verdict == 1)} certainly important, {_percent(verdict == 0)} undecided"


def _summary(explanation: Explanation, level: float) -> str:
    if explanation.vote_share is not None:
        important, undecided, unimportant = (_percent(explanation.verdict(level) == value) for value in (1, 0, -1))
        sentence = f"{important} of the pixels are certainly important, {undecided} undecided"
        return f"{sentence[0].upper()}{sentence[1:]} and {unimportant} certainly unimportant."
    if explanation.uncertainty is not None:
        return "This method gives an uncertainty, but no verdict on which pixels are certainly important."
    return "This method gives neither an uncertainty nor a verdict."


def _percent(chosen: Tensor) -> str:
    """Return the share of pixels in whole per cent, but never 0 % for a few pixels nor 100 % for nearly all."""
    share = 100 * chosen.double().mean().item()
    if 0 < share < 0.5:
        return "under 1\u00a0%"
    return "over 99\u00a0%" if 99.5 < share < 100 else f"{share:.0f}\u00a0%"


def _maps(explanation: Explanation, level: float) -> Iterator[tuple[str, Tensor]]:
    """Yield the maps that the layers and the readings of a pixel need, by name."""
    p, uncertainty = explanation.importance, explanation.uncertainty
    values = torch.full_like(p, torch.nan) if uncertainty is None else uncertainty
    yield "importance", p
    if explanation.vote_share is None:
        yield "uncertainty", values
        yield "certain", (torch.zeros_like(p) if uncertainty is None else explanation.certain_half().float())
        return
    if not np.allclose(values.numpy(), p.numpy() * (1 - p.numpy()), rtol=0, atol=ROUNDING):
        yield "uncertainty", values
    yield "vote_share", explanation.vote_share
    yield "verdict", explanation.verdict(level).float()


def _provenance_rows(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield a nested record in rows such as `method.base.masks`, `1000`; paths are shortened to file names."""
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _provenance_rows(value, f"{name}.")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(file_name(str(part)) for part in value)
        elif name == "photo.name":
            yield name, PurePath(str(value)).name
        else:
            yield name, "none" if value is None else file_name(str(value))
