"""Runtimes by which an encoder is run, made ready once and kept as long as the encoder."""

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
GRAPHS_KEPT = 4
"""Graphs kept for one encoder, each for one size of image and batch."""
CALLS_WORTH_EXPORTING = 512
"""Calls for an image from which a CPU uses ONNX Runtime: exporting takes seconds and doubles the speed."""
SECONDS_WORTH_COMPILING = 60.0
"""Seconds that a GPU has spent on an encoder before it is compiled: about as long as compiling takes."""


class MaskedBatch(NamedTuple):
    """A batch of masked copies to be made from one or several images."""

    images: Float[Tensor, "images channels height width"]
    which: Int[Tensor, " rows"]
    """Number of the image that each copy is made from."""
    whole: Bool[Tensor, " rows"]
    """Whether the copy is the image without a mask."""
    draws: Draws


def masked(batch: MaskedBatch, basis: Basis) -> Float[Tensor, "rows channels height width"]:
    """Return the masked copies, in the images' precision."""
    masks = torch.where(batch.whole[:, None, None], 1.0, basis.masks(batch.draws, batch.images.dtype))
    return (batch.images if len(batch.images) == 1 else batch.images[batch.which]) * masks[:, None]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Forward:
    """An encoder made ready to run."""

    run: Callable[[MaskedBatch, Basis], Any]
    """Makes the masked copies and returns what the encoder gives for them, which is not checked yet."""
    runtime: str
    """The name of the runtime, as it stands in the provenance."""
    fixed: bool = False
    """Whether all batches must have one size."""


@final
@dataclass(eq=False)
class _Ready:
    """Everything that is remembered of an encoder with these weights."""

    weights: list[float] = field(default_factory=list)
    modules: dict[torch.dtype, nn.Module] = field(default_factory=dict)
    forwards: dict[tuple[object, ...], Forward] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    """The values that `remembered` has computed, by their keys."""
    max_pixels: float = math.inf
    """Pixels of all copies in a batch for which there was memory."""
    spent: float = 0.0
    """How many seconds it has run."""


_ready: WeakKeyDictionary[Encoder, _Ready] = WeakKeyDictionary()


def remembered(encoder: Encoder, question: str, answer: Callable[[], T]) -> T:
    """Return the answer to a question about an encoder, which is computed only once."""
    notes = _kept(encoder).notes
    if question not in notes:
        notes[question] = answer()
    remembered_answer: T = notes[question]
    return remembered_answer


def add_spent_time(encoder: Encoder, seconds: float) -> None:
    """Add to the time that an encoder has been run."""
    if isinstance(encoder, TorchEncoder):
        _kept(encoder).spent += seconds


def remember_memory_limit(encoder: Encoder, copies: int, pixels: int) -> None:
    """Remember that memory does not suffice for a batch of this many copies of this many pixels."""
    if isinstance(encoder, TorchEncoder):
        _kept(encoder).max_pixels = copies // 2 * pixels


def limited_by_memory(encoder: Encoder, copies: int, pixels: int) -> int:
    """Return the number of copies per batch, or fewer where there was no memory for them before."""
    max_pixels = _kept(encoder).max_pixels if isinstance(encoder, TorchEncoder) else math.inf
    return copies if copies * pixels <= max_pixels else max(1, int(max_pixels) // pixels)


def forget_stale(encoder: Encoder) -> None:
    """Forget everything about an encoder if its weights have changed since it was made ready."""
    if isinstance(encoder, TorchEncoder) and _kept(encoder).weights != (now := _fingerprint(encoder.module)):
        _ready[encoder] = _Ready(weights=now)


def forward_of(encoder: Encoder, basis: Basis, shape: torch.Size, *, rows: int, chunk: int, calls: int) -> Forward:
    """Return the fastest runtime for `rows` of at most `chunk` copies of such images, and `calls` per image."""
    if not isinstance(encoder, TorchEncoder):
        return Forward(run=lambda batch, basis: encoder(masked(batch, basis)), runtime="its own")
    kept, wanted, dtype, device = _kept(encoder), encoder.runtime, basis.rows.dtype, basis.rows.device.type
    if wanted == "auto":
        compiling = device == "cuda" and kept.spent > SECONDS_WORTH_COMPILING and rows == chunk
        exporting = device == "cpu" and dtype == torch.float32 and calls >= CALLS_WORTH_EXPORTING
        wanted = "compiled" if compiling else "onnxruntime" if exporting else "torch"
    if wanted == "torch":
        return eager(encoder, dtype)
    key = (wanted, dtype, basis.grid, shape, chunk)
    if key not in kept.forwards:
        make = _compiled if wanted == "compiled" else _exported
        kept.forwards[key] = make(encoder, basis, shape, chunk)
        for old in list(kept.forwards)[:-GRAPHS_KEPT]:
            del kept.forwards[old]
    return kept.forwards[key]


def eager(encoder: TorchEncoder, dtype: torch.dtype) -> Forward:
    """Return plain torch, which takes batches of any size."""
    module = _module(encoder, dtype)
    return Forward(run=_running(encoder, module, _Masked(module)), runtime="torch")


def _compiled(encoder: TorchEncoder, basis: Basis, shape: torch.Size, chunk: int) -> Forward:
    """Return the encoder compiled by torch together with the masking; by default plain torch where that fails."""
    module = _module(encoder, basis.rows.dtype)
    run = _running(encoder, module, torch.compile(_Masked(module), dynamic=False))
    try:
        # Without this, torch stops compiling after eight shapes; there is no public name for the setting.
        with torch._dynamo.config.patch(cache_size_limit=10_000, accumulated_cache_size_limit=10_000):
            run(_probe(basis, shape, chunk), basis)
    except Exception as error:  # the compiler raises errors of many kinds
        if lacks_memory(error):
            raise
        if encoder.runtime == "auto":
            return eager(encoder, basis.rows.dtype)
        raise EncoderError(f"{encoder.name} cannot be compiled ({reason(error)}); use another runtime") from error
    return Forward(run=run, runtime="compiled", fixed=True)


def _exported(encoder: TorchEncoder, basis: Basis, shape: torch.Size, chunk: int) -> Forward:
    """Return the encoder exported to ONNX Runtime together with the masking; by default plain torch if that fails."""
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
    """A module that masks and encodes, so that both are compiled as one graph."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.layout = _layout(body)

    def forward(self, batch: MaskedBatch, basis: Basis) -> Any:
        return self.body(masked(batch, basis).contiguous(memory_format=self.layout))


@final
class _Exportable(nn.Module):
    """The same for the exporter, which takes tensors only; the basis becomes a part of the graph."""

    def __init__(self, body: nn.Module, basis: Basis) -> None:
        super().__init__()
        self.body, self.basis = body, basis

    def forward(self, images: Tensor, which: Tensor, whole: Tensor, grids: Tensor, shifts: Tensor) -> Any:
        return self.body(masked(MaskedBatch(images, which, whole, Draws(grids, shifts)), self.basis))


def _tensors(batch: MaskedBatch) -> dict[str, Tensor]:
    """Return a batch as the inputs of an exported graph."""
    images, which, whole, (grids, shifts) = batch
    return {"images": images, "which": which, "whole": whole, "grids": grids, "shifts": shifts}


def _probe(basis: Basis, shape: torch.Size, chunk: int) -> MaskedBatch:
    """Return a made-up batch, by which a graph is traced."""
    device = basis.rows.device
    images = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(device, basis.rows.dtype)
    which = torch.arange(chunk, device=device) % len(images)
    return MaskedBatch(images, which, which < 0, basis.draw(seed=0, start=0, stop=chunk))


def _running(
    encoder: TorchEncoder, module: nn.Module, graph: Callable[[MaskedBatch, Basis], Any]
) -> Callable[[MaskedBatch, Basis], Any]:
    """Return a function that runs the graph without gradients, in evaluation mode and in full precision.

    A copy of the encoder's module stays in evaluation mode; the module itself is put back after each call.
    """
    mode = evaluating if module is encoder.module else nullcontext

    def run(batch: MaskedBatch, basis: Basis) -> Any:
        with torch.no_grad(), mode(module), full_precision(), fastest_convolutions(batch.images.dtype):
            return graph(batch, basis)

    return run


@contextmanager
def fastest_convolutions(dtype: torch.dtype) -> Iterator[None]:
    """Let cuDNN choose convolutions by trying them in half precision; otherwise always use the same ones.

    A convolution that is always the same gives the same bits in every run; one that cuDNN chooses may not.
    """
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = dtype in HALVES
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _module(encoder: TorchEncoder, dtype: torch.dtype) -> nn.Module:
    """Return the encoder's own module, or a copy of it in another precision."""
    modules = _kept(encoder).modules
    if dtype == encoder.dtype:
        return encoder.module
    if dtype not in modules:
        layout = _layout(encoder.module)
        modules[dtype] = copy.deepcopy(encoder.module).to(dtype).to(memory_format=layout).eval()
    return modules[dtype]


def _layout(module: nn.Module) -> torch.memory_format:
    """Return the memory format of the module's weights; not every module runs on another one."""
    kernels = (w for w in module.parameters() if w.ndim == 4 and not w.is_contiguous())
    last = any(w.is_contiguous(memory_format=torch.channels_last) for w in kernels)
    return torch.channels_last if last else torch.contiguous_format


def _kept(encoder: Encoder) -> _Ready:
    """Return what is remembered of an encoder."""
    try:
        return _ready.setdefault(encoder, _Ready())
    except TypeError:  # a user's encoder may have no hash, or not allow weak references
        return _Ready()


def _fingerprint(module: nn.Module) -> list[float]:
    """Return a number for every tensor of weights, which depends on each of its values and on their order."""
    lazy = (UninitializedBuffer, UninitializedParameter)
    every = (t for t in module.state_dict().values() if not isinstance(t, lazy) and in_memory(t))
    tensors = [t.detach().flatten().double().nan_to_num() for t in every if t.is_floating_point()]
    numbers = [t @ torch.linspace(1, 2, len(t), dtype=t.dtype, device=t.device) for t in tensors]
    device = numbers[0].device if numbers else None
    return torch.stack([number.to(device) for number in numbers]).tolist() if numbers else []
