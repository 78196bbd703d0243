"""Which reading of the paper: the one that its tables fit, or its authors' notebook as published.

paper       Σ s·M / Σ M, importance ≥ the cut, weighted votes, thresholds by their right names
notebook    RELAX's uncertainty undivided, and the names of Otsu and triangle exchanged
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.methods.bases.integrated_gradients import IntegratedGradients
from repeat_xai.methods.bases.kernel_shap import KernelShap
from repeat_xai.methods.method_names import METHODS, Method
from repeat_xai.methods.once import Once
from repeat_xai.methods.perturbations import InputDropout
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.spread import Spread

SWAPPED = {"otsu": "triangle", "triangle": "otsu"}


@final
@dataclass(frozen=True, kw_only=True)
class Preset:
    """What the names of methods in a table mean."""

    name: str
    relax: Relax
    swaps_thresholds: bool = False
    repeats: int = 10
    passes: int = 10
    samples: int | None = None
    """Of Kernel SHAP, if not its own."""
    steps: int | None = None
    """Of integrated gradients, if not its own."""

    def __post_init__(self) -> None:
        for name, least in (("repeats", 1), ("passes", 2), ("samples", 1), ("steps", 1)):
            value = getattr(self, name)
            at_least(name, least if value is None else value, least)

    @property
    def budget(self) -> str:
        """In words."""
        parts = {
            "repeats": self.repeats,
            "masks": self.relax.masks,
            "passes of other methods": self.passes,
            "samples of Kernel SHAP": self.samples,
            "steps of integrated gradients": self.steps,
        }
        return ", ".join(f"{many} {what}" for what, many in parts.items() if many is not None)

    def method(self, name: str) -> Method:
        """As in `relax`, `once:saliency`, `repeat:kernel_shap`, `repeat:threshold=otsu` and `repeat:repeats=20`."""
        repeat = Repeat(base=self.relax, estimator="exact", repeats=self.repeats)
        over, _, rest = name.rpartition(":")
        option, _, value = rest.partition("=")
        if option == "threshold":
            return replace(repeat, threshold=SWAPPED.get(value, value) if self.swaps_thresholds else value)
        if option == "repeats":
            return replace(repeat, repeats=max(1, int(value) * self.repeats // 10))
        if rest in ("repeat", "relax"):
            return repeat if rest == "repeat" else self.relax
        base = METHODS[rest]
        if isinstance(base, KernelShap) and self.samples is not None:
            base = replace(base, samples=self.samples)
        if isinstance(base, IntegratedGradients) and self.steps is not None:
            base = replace(base, steps=self.steps)
        wrapped: dict[str, Method] = {
            "": Spread(base=base, by=InputDropout(), passes=self.passes),
            "once": Once(base=base),
        }
        if over == "repeat":
            return replace(repeat, base=base)
        if over not in wrapped:
            raise ConfigurationError(f"unknown method '{name}'")
        return wrapped[over]


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(name="paper", relax=Relax()),
        Preset(name="notebook", relax=Relax(spread="sum"), swaps_thresholds=True),
    )
}
