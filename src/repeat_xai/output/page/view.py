"""An explanation, or several of one photo → what the page shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from torch import Tensor

from repeat_xai.output.figures.captions import budget, title
from repeat_xai.output.page.layers import Layer, layers
from repeat_xai.output.page.map_encoding import Packed, packed
from repeat_xai.types import Explanation

ROUNDING = 1e-6
"""Uncertainty that is p(1 − p) up to this is not carried: the page works it out."""


@final
@dataclass(frozen=True, kw_only=True)
class Link:
    """A file beside the page."""

    label: str
    href: str


@final
@dataclass(frozen=True, kw_only=True)
class View:
    """One method's findings about one photo."""

    title: str
    budget: str
    layers: tuple[Layer, Layer, Layer]
    maps: Mapping[str, Packed]
    """By name; there is no `uncertainty` among them where it is p(1 − p)."""
    provenance: tuple[tuple[str, str], ...]
    links: Sequence[Link]


def view(explanation: Explanation, *, level: float, provenance: Mapping[str, Any], links: Sequence[Link] = ()) -> View:
    """What the page shows of an explanation."""
    return View(
        title=title(explanation),
        budget=" · ".join(budget(explanation)),
        layers=layers(explanation, level=level),
        maps={name: packed(values) for name, values in _maps(explanation, level)},
        provenance=tuple(_rows(provenance)),
        links=tuple(links),
    )


def _maps(explanation: Explanation, level: float) -> Iterator[tuple[str, Tensor]]:
    p, uncertainty = explanation.importance, explanation.uncertainty
    yield "importance", p
    if explanation.vote_share is None:
        yield "uncertainty", uncertainty
        yield "certain", explanation.certain_half().float()
        return
    if not np.allclose(uncertainty.numpy(), p.numpy() * (1 - p.numpy()), rtol=0, atol=ROUNDING):
        yield "uncertainty", uncertainty
    yield "vote_share", explanation.vote_share
    yield "verdict", explanation.verdict(level).float()


def _rows(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """A record in lines, such as `method.base.masks`, `1000`."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{above}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{above}{key}", ", ".join(str(part) for part in value)
        else:
            yield f"{above}{key}", "none" if value is None else str(value)
