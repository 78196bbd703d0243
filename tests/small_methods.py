"""Every label-free method at a budget that every test can afford, and a base made of a function."""

from collections.abc import Callable
from dataclasses import dataclass

import repeat_xai as rx

SMALL = {
    "saliency": rx.Saliency(),
    "guided_backprop": rx.GuidedBackprop(),
    "integrated_gradients": rx.IntegratedGradients(steps=11),
    "input_x_gradient": rx.InputXGradient(),
    "gradient_shap": rx.GradientShap(samples=11),
    "smoothgrad": rx.SmoothGrad(samples=11),
    "vargrad": rx.SmoothGrad(samples=11, moment="variance"),
    "occlusion": rx.Occlusion(window=8, stride=4),
    "kernel_shap": rx.KernelShap(samples=30, features=rx.Squares(cells=3)),
    "lime": rx.Lime(samples=30, features=rx.Squares(cells=3)),
}


@dataclass(frozen=True)
class FunctionBase:
    """A base whose importance map is what a function of (encoder, image, seed) returns."""

    function: Callable

    def importance(self, encoder, image, *, seed):
        return self.function(encoder, image, seed=seed)
