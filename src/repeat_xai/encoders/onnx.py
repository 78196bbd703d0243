"""Networks in ONNX files as encoders (`onnx:FILE`), run by ONNX Runtime on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from repeat_xai.encoders.calls import add_calls
from repeat_xai.encoders.codes import features_of
from repeat_xai.encoders.onnx_files import files_of
from repeat_xai.encoders.pooling import POOLS, pool_features
from repeat_xai.encoders.torch_encoder import IMAGENET, imagenet
from repeat_xai.encoders.waiting import call_on_thread
from repeat_xai.encoders.weights import describe_weights
from repeat_xai.errors import EncoderError, choose, reason
from repeat_xai.types import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float

FATAL = 4
"""Log level at which ONNX Runtime leaves errors to exceptions, and writes nothing to the terminal."""
FLOATS = ("tensor(float)", "tensor(float16)", "tensor(double)")
"""ONNX Runtime's names for the types of output that codes can be made of."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OnnxEncoder:
    """A network in an ONNX file, run on the CPU; its first output holds the features."""

    name: str
    weights: str
    pool: str
    preprocessing: Preprocessing
    session: Any = field(repr=False)
    """Session of ONNX Runtime in which the network is loaded."""
    batch: int | None
    """The only batch size that the network takes; None if it takes any."""

    @property
    def device(self) -> torch.device:
        """The CPU, the only device that is used for ONNX files."""
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """The type of the images that the network takes."""
        return torch.float32

    def __call__(self, images: Float[Tensor, "batch channels height width"]) -> Tensor:
        """Return one code for each preprocessed image."""

        def run() -> Tensor:
            features = self._features(images.to("cpu", torch.float32).contiguous())
            return pool_features(features, self.pool, prefix_tokens=int(self.pool == "cls"))

        codes = features_of(run, self.name, device=self.device)
        add_calls(len(images))
        return codes

    def _features(self, images: Tensor) -> Tensor:
        """Return the features of contiguous images, in batches of the size that the network takes.

        Where that size is fixed, the last image fills up the last batch. The network may loop without end, and its
        calls can therefore be ended.
        """
        rows = self.batch or len(images)
        *batches, last = torch.split(images, rows)
        missing = rows - len(last)
        batches.append(torch.cat((last, last[-1:].expand(missing, -1, -1, -1))) if missing else last)
        source, options = self.session.get_inputs()[0].name, _run_options()

        def run_batches() -> list[Tensor]:
            return [run_session(self.session, {source: batch}, options) for batch in batches]

        def end() -> None:
            options.terminate = True

        features = call_on_thread(run_batches, end=end)
        for part in features:
            if part.shape[:1] != (rows,):  # more rows than images would be cut off unseen
                raise EncoderError(f"{self.name}: returns {list(part.shape)} for {rows} images, not a row for each")
        return torch.cat(features)[: len(images)]


def load(path: Path, *, pool: str | None, size: int | None, preprocessing: Preprocessing | None) -> OnnxEncoder:
    """Return an encoder that runs the network in a file.

    Its image size is read from the file where it is fixed there; the rest of its preprocessing is ImageNet's unless
    another one is given.
    """
    choose("pool", pool or "none", POOLS)
    files = files_of(path)
    try:
        session = call_on_thread(partial(open_session, str(path)))  # it computes constants, which may take very long
    except ImportError as error:
        raise EncoderError("onnx: encoders need ONNX Runtime; pip install onnxruntime") from error
    except Exception as error:  # its errors have no common class
        raise EncoderError(f"{path}: cannot be read as an ONNX network ({reason(error)})") from error
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].type != "tensor(float)":
        kinds = " and ".join(f"{i.type} {i.shape}" for i in inputs[:3]) or "nothing"
        raise EncoderError(f"{path}: takes {kinds}, not one float tensor [batch, channels, height, width]")
    if not outputs or outputs[0].type not in FLOATS:
        kind = outputs[0].type if outputs else "nothing"
        raise EncoderError(f"{path}: its first output is {kind}, not a tensor of floats")
    batch, channels, height, width = (side if isinstance(side, int) else None for side in inputs[0].shape)
    if preprocessing is None:
        sides = IMAGENET.size if height is None or width is None else (height, width)
        preprocessing = imagenet(*((size, size) if size else sides))
    if channels not in (None, len(preprocessing.mean)):
        raise EncoderError(
            f"{path}: its images have {channels} channels; in Python, give a preprocessing of as many means"
        )
    rows, columns = preprocessing.size
    if (rows, columns) != (height or rows, width or columns):
        own = f"{height or 'any'}×{width or 'any'}"
        raise EncoderError(f"{path}: takes images of {own}, not of {rows}×{columns}")
    return OnnxEncoder(
        name=f"onnx:{path.name}",
        weights=" and ".join(describe_weights(file) for file in files),
        pool=pool or "none",
        preprocessing=preprocessing,
        session=session,
        batch=batch if batch and batch > 0 else None,
    )


def open_session(model: str | bytes) -> Any:
    """Return a session of ONNX Runtime for a file or a file's content."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when it is first imported
    import onnxruntime

    onnxruntime.set_default_logger_severity(FATAL)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = FATAL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_session(session: Any, inputs: Mapping[str, Tensor], options: Any = None) -> Tensor:
    """Return the first output; inputs that the network does not have are left out.

    `options` are ONNX Runtime's RunOptions, by which another thread can end the call.
    """
    feed = {source.name: inputs[source.name].contiguous().numpy() for source in session.get_inputs()}
    return torch.from_numpy(session.run([session.get_outputs()[0].name], feed, options)[0])


def _run_options() -> Any:
    """Return options of a call by which another thread can end it."""
    import onnxruntime

    return onnxruntime.RunOptions()
