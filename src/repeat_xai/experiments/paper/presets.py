"""Presets: two readings of the paper, and what the names of methods in its tables mean under each.

paper       the reading that fits the printed tables: Σ s·M / Σ M, importance ≥ the cut, weighted votes, thresholds
            under their right names
notebook    the authors' published notebook: RELAX's uncertainty undivided, the names of Otsu and triangle exchanged
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
        """Return the method of a name such as `relax`, `once:saliency`, `repeat:kernel_shap`, `repeat:threshold=otsu`.

        `repeat:repeats=20` is twice the preset's repeats: the paper's tables compare 10, 20 and 30.
        """
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
