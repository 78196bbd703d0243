"""Presets: two readings of the paper, and what the names of methods in its tables mean under each.

paper       the reading that fits the printed tables: Σ s·M / Σ M, importance ≥ the cut, weighted votes, thresholds
            under their right names
notebook    the authors' published notebook: RELAX's uncertainty undivided, the names of Otsu and triangle exchanged
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from repeat_xai.errors import at_least
from repeat_xai.methods.base import Method
from repeat_xai.methods.method_names import BaseOptions, MethodSettings, parse
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat

SWAPPED = {"otsu": "triangle", "triangle": "otsu"}


@final
@dataclass(frozen=True, kw_only=True)
class Preset:
    """The configuration of the methods that the tables name."""

    name: str
    relax: Relax
    swaps_thresholds: bool = False
    repeats: int = 10
    passes: int = 10
    samples: int | None = None
    """Samples of Kernel SHAP; None: its own default."""
    steps: int | None = None
    """Steps of integrated gradients; None: its own default."""

    def __post_init__(self) -> None:
        for name, minimum in (("repeats", 1), ("passes", 2), ("samples", 1), ("steps", 1)):
            value = getattr(self, name)
            at_least(name, minimum if value is None else value, minimum)

    @property
    def budget(self) -> str:
        """The repeats, masks, passes, samples and steps in words."""
        counts = {
            "repeats": self.repeats,
            "masks": self.relax.masks,
            "passes of other methods": self.passes,
            "samples of Kernel SHAP": self.samples,
            "steps of integrated gradients": self.steps,
        }
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count is not None)

    def method(self, name: str) -> Method:
        """Return the method of this name, such as `relax`, `once:saliency`, `repeat:kernel_shap`, `repeat:repeats=20`.

        The numbers of repeats in the paper's tables, 20 and 30, grow with the number of repeats of this preset.
        """
        method = MethodSettings(
            repeat=Repeat(base=self.relax, estimator="exact", repeats=self.repeats),
            relax=self.relax,
            options=BaseOptions(samples=self.samples, steps=self.steps),
            passes=self.passes,
        ).method(name)
        options = parse(name).options
        if not isinstance(method, Repeat):
            return method
        if self.swaps_thresholds and "threshold" in options:
            threshold = options["threshold"]
            return replace(method, threshold=SWAPPED.get(threshold, threshold))
        if "repeats" in options:
            return replace(method, repeats=max(1, options["repeats"] * self.repeats // 10))
        return method


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(name="paper", relax=Relax()),
        Preset(name="notebook", relax=Relax(normalise_uncertainty="sum"), swaps_thresholds=True),
    )
}
