"""What the options of importance methods may be: an option of one name means the same in every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.methods.bases.baselines import BASELINES
from repeat_xai.methods.bases.channels import CHANNELS
from repeat_xai.types import Image


def reference(value: object) -> None:
    some = value if isinstance(value, tuple | list) else (value,)
    if value is not None and not (some and all(isinstance(one, Image) for one in some)):
        raise ConfigurationError("a reference is an image made with load_image, or some of them")


def features(value: object) -> None:
    if isinstance(value, type) or not (isinstance(value, Tensor) or callable(value)):
        raise ConfigurationError(f"features must be such as Squares() or a tensor of numbers, not {value!r}")


def noise(value: Any) -> None:
    if not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ConfigurationError(f"noise must be a number above zero, not {value!r}")


CHECKS: dict[str, Callable[[Any], None]] = {
    "channels": partial(choose, "channels", known=CHANNELS),
    "baseline": partial(choose, "baseline", known=BASELINES),
    "steps": partial(at_least, "steps", least=1),
    "samples": partial(at_least, "samples", least=1),
    "window": partial(at_least, "window", least=1),
    "stride": partial(at_least, "stride", least=1),
    **{check.__name__: check for check in (reference, features, noise)},
}


def settle(method: Any) -> None:
    """Refuse an option that makes no sense."""
    for field in fields(method):
        if field.name in CHECKS:
            CHECKS[field.name](getattr(method, field.name))
