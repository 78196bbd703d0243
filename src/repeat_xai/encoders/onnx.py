"""ONNX Runtime: `onnx:FILE` → encoder, and a torch module → the same network, several times faster on a CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders import export
from repeat_xai.encoders.calls import add_calls
from repeat_xai.encoders.codes import features_of
from repeat_xai.encoders.onnx_files import files_of
from repeat_xai.encoders.torch_encoder import IMAGENET, POOLS, evaluating, pooled, sized
from repeat_xai.encoders.weights import described
from repeat_xai.errors import EncoderError, choose, lacks_memory, reason
from repeat_xai.types import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float

AGREES = 1e-4
"""How far an exported network's codes may be from torch's, as a share of the largest value."""
FATAL = 4
"""ONNX Runtime's level of logging at which it leaves errors to exceptions, and writes nothing to the terminal."""
FLOATS = ("tensor(float)", "tensor(float16)", "tensor(double)")
"""Kinds of output that codes can be made of."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OnnxEncoder:
    """A network in an ONNX file, run on the CPU; its first output holds the features."""

    name: str
    weights: str
    pool: str
    preprocessing: Preprocessing
    session: Any = field(repr=False)
    """ONNX Runtime's."""
    batch: int | None
    """The one size of batch it takes, if it takes no other."""

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def __call__(self, images: Float[Tensor, "batch channels height width"]) -> Tensor:
        def run() -> Tensor:
            parts = torch.split(images.to("cpu", torch.float32), self.batch or len(images))
            features = torch.cat([self._features(part) for part in parts])
            return pooled(features, self.pool, prefix_tokens=int(self.pool == "cls"))

        codes = features_of(run, self.name, device=self.device)
        add_calls(len(images))
        return codes

    def _features(self, images: Tensor) -> Tensor:
        rows = self.batch or len(images)
        filled = torch.cat((images, images[-1:].expand(rows - len(images), -1, -1, -1)))
        features = _run(self.session, {self.session.get_inputs()[0].name: filled})
        if features.shape[:1] != (rows,):  # more rows than images would be cut off unseen
            raise EncoderError(f"{self.name}: returns {list(features.shape)} for {rows} images, not a row for each")
        return features[: len(images)]


def load(path: Path, *, pool: str | None, size: int | None, preprocessing: Preprocessing | None) -> OnnxEncoder:
    """The network in the file; its size is read from it, the rest of its preprocessing taken to be ImageNet's."""
    choose("pool", pool or "none", POOLS)
    files = files_of(path)
    try:
        session = _session(str(path))
    except ImportError as error:
        raise EncoderError("onnx: encoders need ONNX Runtime; pip install onnxruntime") from error
    except Exception as error:  # its errors have no common class
        raise EncoderError(f"{path}: cannot be read as an ONNX network ({reason(error)})") from error
    wanted, given = session.get_inputs(), session.get_outputs()
    if len(wanted) != 1 or len(wanted[0].shape) != 4 or wanted[0].type != "tensor(float)":
        about = " and ".join(f"{i.type} {i.shape}" for i in wanted[:3]) or "nothing"
        raise EncoderError(f"{path}: takes {about}, not one float tensor [batch, channels, height, width]")
    if not given or given[0].type not in FLOATS:
        about = given[0].type if given else "nothing"
        raise EncoderError(f"{path}: its first output is {about}, not a tensor of floats")
    batch, channels, height, width = (side if isinstance(side, int) else None for side in wanted[0].shape)
    how = preprocessing or IMAGENET
    if channels not in (None, len(how.mean)):
        raise EncoderError(
            f"{path}: its images have {channels} channels; in Python, give a preprocessing of as many means"
        )
    if size is not None:
        how = sized(how, size)
    elif preprocessing is None and height is not None and width is not None:
        how = sized(how, height) if height == width else replace(how, size=(height, width), resize=(height, width))
    if how.size != (height or how.size[0], width or how.size[1]):
        sides = f"{height or 'any'}×{width or 'any'}"
        raise EncoderError(f"{path}: takes images of {sides}, not of {how.size[0]}×{how.size[1]}")
    return OnnxEncoder(
        name=f"onnx:{path.name}",
        weights=" and ".join(described(file) for file in files),
        pool=pool or "none",
        preprocessing=how,
        session=session,
        batch=batch if batch and batch > 0 else None,
    )


def exported(module: nn.Module, probe: Mapping[str, Tensor]) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The module by ONNX Runtime, for inputs such as the probe; refused where it does not give the same codes."""
    try:
        with torch.no_grad(), evaluating(module):
            codes = module(**probe)
            if not isinstance(codes, Tensor):
                raise TypeError(f"{type(codes).__name__} is no tensor")
            session = _session(export.model(module, probe))
        found = _run(session, probe)
    except Exception as error:  # the exporter meets what it cannot do with errors of every kind
        if lacks_memory(error):
            raise
        raise EncoderError(f"cannot be exported to ONNX Runtime ({reason(error.__cause__ or error)})") from error
    if found.shape != codes.shape or not (found - codes).abs().max() <= AGREES * codes.abs().max():
        raise EncoderError("gives other codes when exported to ONNX Runtime")
    return partial(_run, session)


def _session(model: str | bytes) -> Any:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when it is first imported; nobody is told of anything
    import onnxruntime

    onnxruntime.set_default_logger_severity(FATAL)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = FATAL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _run(session: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    """The first output; an input that the network does not use is left out."""
    feed = {source.name: inputs[source.name].contiguous().numpy() for source in session.get_inputs()}
    return torch.from_numpy(session.run([session.get_outputs()[0].name], feed)[0])
