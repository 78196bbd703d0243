"""What `import repeat_xai as rx` gives, when first asked for."""

from repeat_xai import budget, detect, evaluate
from repeat_xai.encoders import load_encoder
from repeat_xai.errors import RepeatError
from repeat_xai.explain.perturb import Crops, Ensemble, Flips, InputDropout, McDropout, Noise
from repeat_xai.explain.repeat import Repeat
from repeat_xai.explain.spread import Spread
from repeat_xai.images import load_image, map_to_photo
from repeat_xai.importance.attribution import Attribution
from repeat_xai.importance.features import Squares, Superpixels, Values
from repeat_xai.importance.gradient_shap import GradientShap
from repeat_xai.importance.guided_backprop import GuidedBackprop
from repeat_xai.importance.input_x_gradient import InputXGradient
from repeat_xai.importance.integrated_gradients import IntegratedGradients
from repeat_xai.importance.kernel_shap import KernelShap
from repeat_xai.importance.lime import Lime
from repeat_xai.importance.occlusion import Occlusion
from repeat_xai.importance.relax import Relax
from repeat_xai.importance.saliency import Saliency
from repeat_xai.importance.smoothgrad import SmoothGrad
from repeat_xai.masks import Grid
from repeat_xai.similarity import Cosine, Linear, Polynomial, Rbf
from repeat_xai.types import Explanation, Image, Preprocessing
from repeat_xai.version import __version__

__all__ = [
    "Attribution",
    "Cosine",
    "Crops",
    "Ensemble",
    "Explanation",
    "Flips",
    "GradientShap",
    "Grid",
    "GuidedBackprop",
    "Image",
    "InputDropout",
    "InputXGradient",
    "IntegratedGradients",
    "KernelShap",
    "Lime",
    "Linear",
    "McDropout",
    "Noise",
    "Occlusion",
    "Polynomial",
    "Preprocessing",
    "Rbf",
    "Relax",
    "Repeat",
    "RepeatError",
    "Saliency",
    "SmoothGrad",
    "Spread",
    "Squares",
    "Superpixels",
    "Values",
    "__version__",
    "budget",
    "detect",
    "evaluate",
    "load_encoder",
    "load_image",
    "map_to_photo",
]
