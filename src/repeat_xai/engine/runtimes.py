"""How an encoder is run: by which runtime and in which precision, made ready once and kept as long as the encoder."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from repeat_xai.encoders import onnx_export
from repeat_xai.encoders.torch_encoder import TorchEncoder, evaluating, full_precision
from repeat_xai.encoders.weights import in_memory
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.errors import EncoderError, lacks_memory, reason
from repeat_xai.types import Encoder

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

T = TypeVar("T")
HALVES = (torch.float16, torch.bfloat16)
KEPT = 4
"""Graphs of one encoder, for as many sizes of image and batch."""
WORTH_EXPORTING = 512
"""Calls an image from which a CPU runs the encoder by ONNX Runtime: exporting takes seconds, and doubles the speed."""
WORTH_COMPILING = 60.0
"""Seconds a GPU has spent on an encoder before it is compiled: about as long as compiling takes."""


class Batch(NamedTuple):
    """Masked copies to be made, of one or several images."""

    images: Float[Tensor, "images channels height width"]
    which: Int[Tensor, " rows"]
    """The image of each copy."""
    whole: Bool[Tensor, " rows"]
    """Whether the copy is the image as it is."""
    draws: Draws


def masked(batch: Batch, basis: Basis) -> Float[Tensor, "rows channels height width"]:
    """The masked copies, in the images' precision."""
    masks = torch.where(batch.whole[:, None, None], 1.0, basis.masks(batch.draws, batch.images.dtype))
    return (batch.images if len(batch.images) == 1 else batch.images[batch.which]) * masks[:, None]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Forward:
    """An encoder made ready to run."""

    run: Callable[[Batch, Basis], Any]
    """Codes, as far as the encoder can be trusted."""
    runtime: str
    fixed: bool = False
    """Takes batches of one size only."""


@dataclass(eq=False)
class _Ready:
    """What has been made ready for an encoder with these weights, and for how long it has been used."""

    weights: list[float] = field(default_factory=list)
    modules: dict[torch.dtype, nn.Module] = field(default_factory=dict)
    forwards: dict[tuple[object, ...], Forward] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    """What has been found out about it."""
    most: float = math.inf
    """Pixels of copies at once that there was memory for."""
    spent: float = 0.0


_ready: WeakKeyDictionary[Encoder, _Ready] = WeakKeyDictionary()


def remembered(encoder: Encoder, question: str, answer: Callable[[], T]) -> T:
    """What was found out about an encoder, asked once."""
    notes = _kept(encoder).notes
    if question not in notes:
        notes[question] = answer()
    found: T = notes[question]
    return found


def spent(encoder: Encoder, seconds: float) -> None:
    """Say that an encoder has been run for so long."""
    if isinstance(encoder, TorchEncoder):
        _kept(encoder).spent += seconds


def too_many(encoder: Encoder, copies: int, pixels: int) -> None:
    """Say that there is no memory for so many copies of so many pixels at once."""
    if isinstance(encoder, TorchEncoder):
        _kept(encoder).most = copies // 2 * pixels


def at_most(encoder: Encoder, copies: int, pixels: int) -> int:
    """So many copies at once, or fewer where there was no memory for them."""
    most = _kept(encoder).most if isinstance(encoder, TorchEncoder) else math.inf
    return copies if copies * pixels <= most else max(1, int(most) // pixels)


def renew(encoder: Encoder) -> None:
    """Forget what was made ready if the encoder's weights have changed since, by whatever means."""
    if isinstance(encoder, TorchEncoder) and _kept(encoder).weights != (now := _fingerprint(encoder.module)):
        _ready[encoder] = _Ready(weights=now)


def forward_of(encoder: Encoder, basis: Basis, shape: torch.Size, *, rows: int, chunk: int, calls: int) -> Forward:
    """The quickest way known to run the encoder on some of `chunk` copies of such images, and `calls` an image."""
    if not isinstance(encoder, TorchEncoder):
        return Forward(run=lambda batch, basis: encoder(masked(batch, basis)), runtime="its own")
    kept, wanted, dtype, device = _kept(encoder), encoder.runtime, basis.rows.dtype, basis.rows.device.type
    if wanted == "auto":
        compiling = device == "cuda" and kept.spent > WORTH_COMPILING and rows == chunk
        exporting = device == "cpu" and dtype == torch.float32 and calls >= WORTH_EXPORTING
        wanted = "compiled" if compiling else "onnxruntime" if exporting else "torch"
    if wanted == "torch":
        return eager(encoder, dtype)
    key = (wanted, dtype, basis.grid, shape, chunk)
    if key not in kept.forwards:
        make = _compiled if wanted == "compiled" else _exported
        kept.forwards[key] = make(encoder, basis, shape, chunk)
        for old in list(kept.forwards)[:-KEPT]:
            del kept.forwards[old]
    return kept.forwards[key]


def eager(encoder: TorchEncoder, dtype: torch.dtype) -> Forward:
    """Plain torch, for batches of any size."""
    module = _module(encoder, dtype)
    return Forward(run=_running(encoder, module, _Masked(module)), runtime="torch")


def _compiled(encoder: TorchEncoder, basis: Basis, shape: torch.Size, chunk: int) -> Forward:
    module = _module(encoder, basis.rows.dtype)
    run = _running(encoder, module, torch.compile(_Masked(module), dynamic=False))
    try:
        with torch._dynamo.config.patch(cache_size_limit=10_000, accumulated_cache_size_limit=10_000):
            run(_probe(basis, shape, chunk), basis)
    except Exception as error:  # the compiler meets what it cannot do with errors of every kind
        if lacks_memory(error):
            raise
        if encoder.runtime == "auto":
            return eager(encoder, basis.rows.dtype)
        raise EncoderError(f"{encoder.name} cannot be compiled ({reason(error)}); use another runtime") from error
    return Forward(run=run, runtime="compiled", fixed=True)


def _exported(encoder: TorchEncoder, basis: Basis, shape: torch.Size, chunk: int) -> Forward:
    module = _module(encoder, basis.rows.dtype)
    try:
        run = onnx_export.exported(_Exportable(module, basis), _tensors(_probe(basis, shape, chunk)))
    except EncoderError as error:
        if encoder.runtime == "auto":
            return eager(encoder, basis.rows.dtype)
        raise EncoderError(f"{encoder.name} {error}; use another runtime") from error
    return Forward(run=lambda batch, _: run(_tensors(batch)), runtime="onnxruntime", fixed=True)


@final
class _Masked(nn.Module):
    """Masking and encoding as one graph."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.layout = _layout(body)

    def forward(self, batch: Batch, basis: Basis) -> Any:
        return self.body(masked(batch, basis).contiguous(memory_format=self.layout))


@final
class _Exportable(nn.Module):
    """The same for an exporter, who takes tensors only, with the basis as a part of the graph."""

    def __init__(self, body: nn.Module, basis: Basis) -> None:
        super().__init__()
        self.body, self.basis = body, basis

    def forward(self, images: Tensor, which: Tensor, whole: Tensor, grids: Tensor, shifts: Tensor) -> Any:
        return self.body(masked(Batch(images, which, whole, Draws(grids, shifts)), self.basis))


def _tensors(batch: Batch) -> dict[str, Tensor]:
    """A batch as an exported graph takes it."""
    images, which, whole, (grids, shifts) = batch
    return {"images": images, "which": which, "whole": whole, "grids": grids, "shifts": shifts}


def _probe(basis: Basis, shape: torch.Size, chunk: int) -> Batch:
    """A made-up batch."""
    device = basis.rows.device
    images = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(device, basis.rows.dtype)
    which = torch.arange(chunk, device=device) % len(images)
    return Batch(images, which, which < 0, basis.draw(seed=0, start=0, stop=chunk))


def _running(
    encoder: TorchEncoder, module: nn.Module, graph: Callable[[Batch, Basis], Any]
) -> Callable[[Batch, Basis], Any]:
    """The graph run as it should be; a copy of the encoder's module is in evaluation mode for good."""
    mode = evaluating if module is encoder.module else nullcontext

    def run(batch: Batch, basis: Basis) -> Any:
        with torch.no_grad(), mode(module), full_precision(), quickest(batch.images.dtype):
            return graph(batch, basis)

    return run


@contextmanager
def quickest(dtype: torch.dtype) -> Iterator[None]:
    """In half precision, the convolution that is quickest when tried; else always the same one, to the last bit."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = dtype in HALVES
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _module(encoder: TorchEncoder, dtype: torch.dtype) -> nn.Module:
    """The encoder's own module, or a copy of it in another precision."""
    modules = _kept(encoder).modules
    if dtype == encoder.dtype:
        return encoder.module
    if dtype not in modules:
        layout = _layout(encoder.module)
        modules[dtype] = copy.deepcopy(encoder.module).to(dtype).to(memory_format=layout).eval()
    return modules[dtype]


def _layout(module: nn.Module) -> torch.memory_format:
    """That of the module's weights: one that was not made for another may not run on it."""
    kernels = (w for w in module.parameters() if w.ndim == 4 and not w.is_contiguous())
    last = any(w.is_contiguous(memory_format=torch.channels_last) for w in kernels)
    return torch.channels_last if last else torch.contiguous_format


def _kept(encoder: Encoder) -> _Ready:
    try:
        return _ready.setdefault(encoder, _Ready())
    except TypeError:  # an encoder of one's own need neither have a hash nor bear weak references
        return _Ready()


def _fingerprint(module: nn.Module) -> list[float]:
    """A number for every tensor of weights, sensitive to each of its values and to their order."""
    lazy = (UninitializedBuffer, UninitializedParameter)
    every = (t for t in module.state_dict().values() if not isinstance(t, lazy) and in_memory(t))
    tensors = [t.detach().flatten().double().nan_to_num() for t in every if t.is_floating_point()]
    numbers = [t @ torch.linspace(1, 2, len(t), dtype=t.dtype, device=t.device) for t in tensors]
    here = numbers[0].device if numbers else None
    return torch.stack([number.to(here) for number in numbers]).tolist() if numbers else []
