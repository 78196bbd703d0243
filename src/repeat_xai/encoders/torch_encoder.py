"""Any `nn.Module` → encoder: which tensor is the representation, run frozen and left as found."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders.calls import add_calls
from repeat_xai.encoders.codes import features_of
from repeat_xai.errors import ConfigurationError, EncoderError, choose
from repeat_xai.types import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
IMAGENET = Preprocessing(size=(224, 224), resize=256, mean=IMAGENET_MEAN, std=IMAGENET_STD)
"""What a module of unknown training is taken to expect."""
Precision = Literal["auto", "float16", "bfloat16", "float32", "float64"]
Runtime = Literal["auto", "torch", "compiled", "onnxruntime"]
DEVICES = ("cpu", "cuda")
"""Kinds of device that know float64, which sums are kept in."""


def avg(features: Tensor, prefix_tokens: int) -> Tensor:
    """Mean over places, or over the tokens that stand for a place."""
    return features.mean((2, 3)) if features.ndim == 4 else features[:, prefix_tokens:].mean(1)


def max(features: Tensor, prefix_tokens: int) -> Tensor:
    """Maximum over places, or over the tokens that stand for a place."""
    return features.amax((2, 3)) if features.ndim == 4 else features[:, prefix_tokens:].amax(1)


def cls(features: Tensor, prefix_tokens: int) -> Tensor:
    """The class token."""
    if features.ndim != 3 or not prefix_tokens:
        raise EncoderError("pool 'cls' needs a class token, which this encoder does not have; choose avg or max")
    return features[:, 0]


def flatten(features: Tensor, prefix_tokens: int) -> Tensor:
    """Every value, in order."""
    return features.flatten(1)


def none(features: Tensor, prefix_tokens: int) -> Tensor:
    """The module's output is the code."""
    return features


POOLS: dict[str, Callable[[Tensor, int], Tensor]] = {f.__name__: f for f in (avg, max, cls, flatten, none)}


def pooled(features: object, pool: str, *, prefix_tokens: int) -> Tensor:
    """One code an image, or a clear refusal."""
    if not isinstance(features, Tensor):
        raise EncoderError(f"the network gives {type(features).__name__} and no tensor that could be pooled")
    if pool in ("avg", "max") and features.ndim not in (3, 4):
        raise EncoderError(f"pool '{pool}' needs places or tokens, but the network gives {list(features.shape)}")
    return POOLS[pool](features, prefix_tokens)


@final
class Pooled(nn.Module):
    """Images → features → one code an image."""

    def __init__(self, body: nn.Module, pool: str, *, prefix_tokens: int = 0) -> None:
        super().__init__()
        choose("pool", pool, POOLS)
        self.body = body
        self.pool = pool
        self.prefix_tokens = prefix_tokens

    def forward(self, images: Tensor) -> Tensor:
        return pooled(self.body(images), self.pool, prefix_tokens=self.prefix_tokens)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TorchEncoder:
    """A torch module with its preprocessing and its pooling named."""

    name: str
    weights: str
    pool: str
    preprocessing: Preprocessing
    module: nn.Module = field(repr=False)
    """Images → codes."""
    precision: Precision = "auto"
    """In which its masked copies are encoded: on a GPU half, where that does not decide votes; else its own."""
    runtime: Runtime = "auto"
    """By which they are: on a CPU ONNX Runtime, where it gives the same codes; else torch, compiled in long runs."""
    stochastic: bool = field(default=False, repr=False)
    """Whether its codes are random on purpose, as with dropout left on."""

    @property
    def device(self) -> torch.device:
        return _probe(self.module).device

    @property
    def dtype(self) -> torch.dtype:
        return _probe(self.module).dtype

    def __call__(self, images: Float[Tensor, "batch channels height width"]) -> Tensor:
        device = self.device

        def run() -> object:
            with torch.no_grad(), evaluating(self.module), full_precision():
                return self.module(images.to(device, self.dtype, copy=True))  # it may write into its input

        codes = features_of(run, self.name, device=device)
        add_calls(len(images))
        return codes.detach().clone()  # it may keep what it returns, and write into that at its next call


def from_module(
    module: nn.Module,
    *,
    name: str | None = None,
    pool: str | None = None,
    size: int | None = None,
    preprocessing: Preprocessing | None = None,
    device: torch.device | None = None,
) -> TorchEncoder:
    """Wrap a module without touching it; on another device a copy is used."""
    here = _probe(module).device
    if device is not None and (here.type, here.index or 0) != (device.type, device.index or 0):
        module = copy.deepcopy(module).to(device)
    if _probe(module).device.type not in DEVICES:
        raise ConfigurationError(f"the module is on {here}; move it to {' or '.join(DEVICES)} first")
    how = preprocessing or IMAGENET
    return TorchEncoder(
        name=name or type(module).__name__,
        weights="as given",
        pool=pool or "none",
        preprocessing=sized(how, size) if size else how,
        module=Pooled(module, pool, prefix_tokens=int(pool == "cls")) if pool else module,
    )


def sized(preprocessing: Preprocessing, size: int) -> Preprocessing:
    """The same preprocessing for a square input of another size."""
    if isinstance(preprocessing.resize, tuple):
        return replace(preprocessing, size=(size, size), resize=(size, size))
    resize = round(preprocessing.resize * size / min(preprocessing.size))
    return replace(preprocessing, size=(size, size), resize=resize)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for the block; every training flag as it was afterwards."""
    before = [(part, part.training) for part in module.modules()]
    for part, training in before:
        if training:
            part.training = False
    try:
        yield
    finally:
        for part, training in before:
            if part.training != training:  # the module may have switched itself
                part.training = training


@contextmanager
def full_precision() -> Iterator[None]:
    """No TF32 for the block: an untrained encoder's similarities differ in digits that it drops."""
    backends: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [backend.allow_tf32 for backend in backends]
    for backend in backends:
        backend.allow_tf32 = False
    try:
        yield
    finally:
        for backend, allowed in zip(backends, before, strict=True):
            backend.allow_tf32 = allowed


def _probe(module: nn.Module) -> Tensor:
    """A floating-point tensor of the module, which tells where it lives and in what precision."""
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor
    return torch.empty(0)
