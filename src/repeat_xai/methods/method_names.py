"""Every method by its name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.methods.bases.features import Features
from repeat_xai.methods.bases.gradient_shap import GradientShap
from repeat_xai.methods.bases.guided_backprop import GuidedBackprop
from repeat_xai.methods.bases.input_x_gradient import InputXGradient
from repeat_xai.methods.bases.integrated_gradients import IntegratedGradients
from repeat_xai.methods.bases.kernel_shap import KernelShap
from repeat_xai.methods.bases.lime import Lime
from repeat_xai.methods.bases.occlusion import Occlusion
from repeat_xai.methods.bases.saliency import Saliency
from repeat_xai.methods.bases.smoothgrad import SmoothGrad
from repeat_xai.methods.once import Once
from repeat_xai.methods.perturbations import Perturbation
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.spread import Spread
from repeat_xai.types import Image

Method = Repeat | Relax | Spread | Once
"""What explains many images."""

METHODS: dict[str, Any] = {
    "repeat": Repeat(),
    "relax": Relax(),
    "saliency": Saliency(),
    "guided_backprop": GuidedBackprop(),
    "integrated_gradients": IntegratedGradients(),
    "input_x_gradient": InputXGradient(),
    "gradient_shap": GradientShap(),
    "smoothgrad": SmoothGrad(),
    "vargrad": SmoothGrad(moment="variance"),
    "occlusion": Occlusion(),
    "kernel_shap": KernelShap(),
    "lime": Lime(),
}
"""As they are unless told otherwise. `repeat:NAME` is REPEAT over another."""


class Options(NamedTuple):
    """What may be told to the methods that have such an option; None: as they are."""

    samples: int | None = None
    steps: int | None = None
    baseline: str | None = None
    features: Features | None = None
    channels: str | None = None
    reference: Image | None = None


def expected(names: str) -> list[str]:
    """The names in a list such as `repeat,relax,repeat:kernel_shap`, all of them known."""
    found = [name.strip() for name in names.split(",")]
    for name in found:
        over, _, base = name.rpartition(":")
        choose("method", base, METHODS)
        if over not in ("", "repeat") or (over and base == "repeat"):
            raise ConfigurationError(f"unknown method '{name}'; REPEAT over another base is repeat:NAME")
    if len(set(found)) < len(found):
        raise ConfigurationError(f"a method is named twice in '{names}'")
    return found


def named(
    names: list[str], *, repeat: Repeat, relax: Relax, options: Options, by: Perturbation | None, passes: int
) -> dict[str, Method]:
    """The methods of these names; one without uncertainty of its own is given its spread."""
    told = {option: value for option, value in options._asdict().items() if value is not None}
    used: set[str] = set()

    def method(name: str) -> Method:
        over, _, base = name.rpartition(":")
        if base in ("repeat", "relax"):
            return repeat if base == "repeat" or over else relax
        mine = {field.name for field in fields(METHODS[base])} & told.keys()
        used.update(mine)
        chosen = replace(METHODS[base], **{option: told[option] for option in mine})
        return replace(repeat, base=chosen, estimator="exact") if over else Spread(base=chosen, by=by, passes=passes)

    found = {name: method(name) for name in names}
    if unused := sorted(told.keys() - used):
        raise ConfigurationError(f"{' and '.join(unused)}: not an option of {', '.join(names)}")
    return found
