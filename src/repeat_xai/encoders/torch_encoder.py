"""A torch module as an encoder: run in evaluation mode, without gradients, and left as it was found."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders.calls import add_calls, uncounted
from repeat_xai.encoders.codes import features_of, plain_tensor
from repeat_xai.encoders.pooling import PooledNetwork
from repeat_xai.encoders.torch_state import generators_restored, settings_restored
from repeat_xai.errors import ConfigurationError
from repeat_xai.types import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.encoders.text_tower import TextTower

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
IMAGENET = Preprocessing(size=(224, 224), resize=256, mean=IMAGENET_MEAN, std=IMAGENET_STD)
"""The preprocessing of a module for which none is given."""
Precision = Literal["auto", "float16", "bfloat16", "float32", "float64"]
Runtime = Literal["auto", "torch", "compiled", "onnxruntime"]
DEVICES = ("cpu", "cuda")
"""Kinds of device that encoders run on. Sums over masked copies are kept in float64, which Apple's MPS lacks."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TorchEncoder:
    """A torch module with a name, a pooling and a preprocessing."""

    name: str
    weights: str
    """Where the weights come from, so that others can load the same: a name, a commit or the SHA-256 of a file."""
    pool: str
    preprocessing: Preprocessing
    module: nn.Module = field(repr=False)
    """The network with its pooling: images → codes."""
    precision: Precision = "auto"
    """Precision in which masked copies are encoded.

    "auto" is half precision on a GPU where that does not change votes, else the module's own.
    """
    runtime: Runtime = "auto"
    """The runtime of the masked copies.

    "auto" is ONNX Runtime on a CPU where it gives the same codes, else torch, compiled in long runs.
    """
    encode_text: TextTower | None = field(default=None, repr=False)
    """Returns the codes of texts, for the same space as those of images; None where there is no text tower."""
    stochastic: bool = field(default=False, repr=False)
    """Whether its codes are random on purpose, as with dropout left on."""

    @property
    def device(self) -> torch.device:
        """The device of the module's weights."""
        return _first_float_tensor(self.module).device

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type of the module's weights."""
        return _first_float_tensor(self.module).dtype

    def __call__(self, images: Float[Tensor, "batch channels height width"]) -> Tensor:
        """Return one code for each preprocessed image, on the encoder's device."""
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
    """Return an encoder that runs the module itself, or a copy of it where another device is asked for.

    Its preprocessing is ImageNet's, at another size if given, unless another one is given.
    """
    module = on_device(module, device)
    encoder = TorchEncoder(
        name=name or type(module).__name__,
        weights="as given",
        pool=pool or "none",
        preprocessing=preprocessing or (imagenet(size, size) if size else IMAGENET),
        module=PooledNetwork(module, pool, prefix_tokens=int(pool == "cls")) if pool else module,
    )
    _expect_tensor_output(module, encoder)
    return encoder


def on_device(module: nn.Module, device: torch.device | None) -> nn.Module:
    """Return the module, or a copy of it on another device; refuse a module that cannot be run where it is."""
    current = _first_float_tensor(module).device
    if device is not None and (current.type, current.index or 0) != (device.type, device.index or 0):
        return copy.deepcopy(module).to(device)
    if current.type not in DEVICES:
        raise ConfigurationError(f"{unsupported(current)}; move {type(module).__name__} to {' or '.join(DEVICES)}")
    return module


def unsupported(device: torch.device) -> str:
    """Return the words that say that encoders do not run on a device, with the reason where it is known.

    >>> unsupported(torch.device("mps"))
    "device 'mps' is not supported, because it lacks float64, in which sums are kept"
    """
    lack = ", because it lacks float64, in which sums are kept" if device.type == "mps" else ""
    return f"device '{device}' is not supported{lack}"


def _expect_tensor_output(module: nn.Module, encoder: TorchEncoder) -> None:
    """Raise an EncoderError if the module returns anything but a tensor for a made-up image of the encoder's size.

    A copy of the module is tried, so that whatever it changes in itself is lost; only what its code keeps elsewhere, in
    a global variable or a closure, takes part in the trial. A module that cannot be copied, or that fails on the image,
    is accepted: the image may be at fault, and its first real image will show it.
    """
    device, dtype, preprocessing = encoder.device, encoder.dtype, encoder.preprocessing
    try:
        with uncounted(), settings_restored(), generators_restored(device), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            trial = copy.deepcopy(module)
            with evaluating(trial):
                image = torch.zeros(1, len(preprocessing.mean), *preprocessing.size, device=device, dtype=dtype)
                output = trial(image)
    except Exception:  # any module may fail in any way
        return
    plain_tensor(output, encoder.name, device=device)


def sized(preprocessing: Preprocessing, size: int) -> Preprocessing:
    """Return the same preprocessing for a square input of another size.

    The cropped share of the photo stays as it is, unless the preprocessing squeezes photos into a fixed shape: then
    they are squeezed into the new size without a crop.
    """
    if isinstance(preprocessing.resize, tuple):
        return replace(preprocessing, size=(size, size), resize=(size, size))
    resize = round(preprocessing.resize * size / min(preprocessing.size))
    return replace(preprocessing, size=(size, size), resize=resize)


def imagenet(height: int, width: int) -> Preprocessing:
    """Return ImageNet's preprocessing for inputs of another size; photos are squeezed into one that is not square."""
    if height == width:
        return sized(IMAGENET, height)
    return replace(IMAGENET, size=(height, width), resize=(height, width))


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put the module into evaluation mode for the block, and restore the training flag of each of its parts."""
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
    """Switch TF32 off for the block: similarities of an untrained encoder differ only in digits that TF32 drops."""
    backends: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [backend.allow_tf32 for backend in backends]
    for backend in backends:
        backend.allow_tf32 = False
    try:
        yield
    finally:
        for backend, allowed in zip(backends, before, strict=True):
            backend.allow_tf32 = allowed


def _first_float_tensor(module: nn.Module) -> Tensor:
    """Return a floating-point tensor of the module, whose device and type stand for all of it."""
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor
    return torch.empty(0)
