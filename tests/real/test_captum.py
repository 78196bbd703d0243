"""On trained encoders every label-free method equals Captum called directly on the same scalar."""

import captum.attr as attr
import numpy as np
import pytest
import torch
from captum._utils.models.linear_model import SkLearnRidge

import repeat_xai as rx
from repeat_xai.seeds import fold

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore:Setting backward hooks")]
ENCODERS = {
    "alexnet": ("torchvision:alexnet", "alexnet_features.safetensors"),
    "squeezenet": ("torchvision:squeezenet1_1", "squeezenet1_1.safetensors"),
    "lite0": ("efficientnet_lite0", None),
    "vit": ("timm:vit_small_patch14_dinov2", "vit_small_patch14_dinov2.fp16.safetensors"),
}
BATCH = 8
"""Copies per batch, as in the package: a difference of two large numbers shows how a batch was rounded."""
PHOTO = "data/VOCdevkit/VOC2012/JPEGImages/2007_001763.jpg"


@pytest.fixture(scope="module", params=ENCODERS)
def subject(request, shared):
    name, file = ENCODERS[request.param]
    size = {"size": 224} if request.param == "vit" else {}
    encoder = rx.load_encoder(name, weights=file and shared / "weights" / file, **size)
    return encoder, rx.load_image(shared / PHOTO, encoder)


class Scalar(torch.nn.Module):
    """The scalar ⟨f(x), f(x̃)⟩, written independently of the package."""

    def __init__(self, module, x):
        super().__init__()
        self.module = module
        self.code = module(x).detach()[0]

    def forward(self, images):
        return self.module(images) @ self.code


def grid(side):
    rows = torch.arange(224) * side // 224
    return (rows[:, None] * side + rows)[None, None]


def range_of(x):
    return float(x.detach().max() - x.detach().min())


def shap(g, x):
    return attr.KernelShap(g).attribute(x, feature_mask=grid(3), n_samples=12, perturbations_per_eval=BATCH)


def lime(g, x):
    def similarity_kernel(original, perturbed, kept, **_):
        distance = 1 - torch.nn.functional.cosine_similarity(kept.double(), torch.ones_like(kept).double())
        return torch.exp(-(distance**2) / (2 * 0.25**2))

    return attr.Lime(g, SkLearnRidge(alpha=1.0), similarity_kernel).attribute(
        x, feature_mask=grid(3), n_samples=12, perturbations_per_eval=BATCH
    )


def gradient_shap(g, x):
    return attr.GradientShap(g).attribute(x, torch.zeros_like(x), n_samples=4, stdevs=0.1 * range_of(x))


def smoothgrad(kind):
    def direct(g, x):
        tunnel = attr.NoiseTunnel(attr.Saliency(g))
        return tunnel.attribute(x, nt_type=kind, nt_samples=4, stdevs=0.15 * range_of(x), abs=False)

    return direct


def occlusion(g, x):
    return attr.Occlusion(g).attribute(x, (3, 75, 75), strides=(3, 75, 75), perturbations_per_eval=BATCH)


DIRECT = {
    "saliency": (rx.Saliency(), lambda g, x: attr.Saliency(g).attribute(x)),
    "guided": (rx.GuidedBackprop(), lambda g, x: attr.GuidedBackprop(g).attribute(x)),
    "integrated": (rx.IntegratedGradients(steps=4), lambda g, x: attr.IntegratedGradients(g).attribute(x, n_steps=4)),
    "input": (rx.InputXGradient(), lambda g, x: attr.InputXGradient(g).attribute(x)),
    "gradient_shap": (rx.GradientShap(samples=4), gradient_shap),
    "smoothgrad": (rx.SmoothGrad(samples=4), smoothgrad("smoothgrad")),
    "vargrad": (rx.SmoothGrad(samples=4, moment="variance"), smoothgrad("vargrad")),
    "occlusion": (rx.Occlusion(window=75, stride=75), occlusion),
    "kernel_shap": (rx.KernelShap(samples=12, features=rx.Squares(cells=3)), shap),
    "lime": (rx.Lime(samples=12, features=rx.Squares(cells=3)), lime),
}


@pytest.mark.filterwarnings("ignore:.*has no nn.ReLU")
@pytest.mark.parametrize("name", DIRECT)
def test_a_label_free_method_equals_captum(name, subject):
    encoder, image = subject
    method, direct = DIRECT[name]
    importance = method.importance(encoder, image, seed=0)
    seed = fold(0, image.photo.digest)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        x = image.pixels[None].clone().requires_grad_(method.gradients)
        values = direct(Scalar(encoder.module, x), x)[0].detach().double()
    expected = values.abs().sum(0) if method.channels == "sum_abs" else values.mean(0)
    assert (importance - expected).abs().max() <= 1e-6 * expected.abs().max()
    assert expected.abs().max() > 0


def test_guided_backpropagation_of_a_network_of_gelus_equals_saliency(shared):
    name, file = ENCODERS["vit"]
    encoder = rx.load_encoder(name, weights=shared / "weights" / file, size=224)
    image = rx.load_image(shared / PHOTO, encoder)
    with pytest.warns(UserWarning, match="has no nn.ReLU"):
        guided = rx.GuidedBackprop().importance(encoder, image, seed=0)
    assert guided.equal(rx.Saliency().importance(encoder, image, seed=0))
