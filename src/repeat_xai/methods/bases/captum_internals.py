"""The two internal parts of Captum that are used, in one place.

Captum has no public way to bound the memory of GradientSHAP: its public class draws all samples in one batch. The
internal class below, in Captum's public `NoiseTunnel`, computes the same in batches. LIME's ridge regression has no
public name. Both have kept their form since Captum 0.5; the tests compare them with closed forms.
"""

from typing import Any

from torch import nn


def input_baseline_x_gradient(forward: nn.Module) -> Any:
    """Return the gradient at a random point between a baseline and the input, times their difference."""
    from captum.attr._core.gradient_shap import InputBaselineXGradient

    return InputBaselineXGradient(forward)


def ridge_regression(alpha: float) -> Any:
    """Return a ridge regression of scikit-learn in the form that Captum's LIME takes."""
    from captum._utils.models.linear_model import SkLearnRidge

    return SkLearnRidge(alpha=alpha)
