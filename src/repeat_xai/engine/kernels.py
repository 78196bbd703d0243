"""Mercer kernels, which measure how similar the codes of masked copies are to the code of the whole image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.errors import ConfigurationError, expect_number

if TYPE_CHECKING:
    from jaxtyping import Float


@runtime_checkable
class Kernel(Protocol):
    """Measures how similar the codes of masked copies are to the code of the whole image."""

    def __call__(self, code: Float[Tensor, " dim"], codes: Float[Tensor, "masks dim"]) -> Float[Tensor, " masks"]: ...


@final
@dataclass(frozen=True, kw_only=True)
class Cosine:
    """The cosine ⟨h, h̄⟩ / ‖h‖‖h̄‖, which is 0 where a code is zero."""

    def __call__(self, code: Float[Tensor, " dim"], codes: Float[Tensor, "masks dim"]) -> Float[Tensor, " masks"]:
        return F.cosine_similarity(code[None], codes, dim=1, eps=1e-30)


@final
@dataclass(frozen=True, kw_only=True)
class Linear:
    """The inner product ⟨h, h̄⟩."""

    def __call__(self, code: Float[Tensor, " dim"], codes: Float[Tensor, "masks dim"]) -> Float[Tensor, " masks"]:
        return codes @ code


@final
@dataclass(frozen=True, kw_only=True)
class Polynomial:
    """The polynomial kernel (γ⟨h, h̄⟩ + offset)^degree; γ is 1/dim unless given."""

    degree: int = 3
    gamma: float | None = None
    offset: float = 1.0

    def __post_init__(self) -> None:
        _expect_numbers({"degree": self.degree, "gamma": self.gamma, "offset": self.offset})
        if self.degree < 1 or self.offset < 0 or (self.gamma is not None and self.gamma <= 0):
            raise ConfigurationError(f"{self} is no kernel: degree ≥ 1, gamma > 0 and offset ≥ 0 are needed")

    def __call__(self, code: Float[Tensor, " dim"], codes: Float[Tensor, "masks dim"]) -> Float[Tensor, " masks"]:
        return ((self.gamma or 1 / len(code)) * (codes @ code) + self.offset) ** self.degree


@final
@dataclass(frozen=True, kw_only=True)
class Rbf:
    """The Gaussian kernel exp(−γ‖h − h̄‖²); γ is 1/dim unless given."""

    gamma: float | None = None

    def __post_init__(self) -> None:
        _expect_numbers({"gamma": self.gamma})
        if self.gamma is not None and self.gamma <= 0:
            raise ConfigurationError(f"{self} is no kernel: gamma > 0 is needed")

    def __call__(self, code: Float[Tensor, " dim"], codes: Float[Tensor, "masks dim"]) -> Float[Tensor, " masks"]:
        return torch.exp(-(self.gamma or 1 / len(code)) * (codes - code).square().sum(1))


KERNELS = {kernel.__name__.lower(): kernel for kernel in (Cosine, Linear, Polynomial, Rbf)}
"""Every kernel by its name."""


def _expect_numbers(parameters: Mapping[str, object]) -> None:
    """Refuse parameters that are no numbers; None stands for a default."""
    for name, value in parameters.items():
        if value is not None:
            expect_number(name, value)
