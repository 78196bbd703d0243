"""The public names: all that `import repeat_xai as rx` offers. They are imported when first used."""

from repeat_xai import metrics
from repeat_xai.data.images import load_image, map_to_photo
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.engine import mask_bounds
from repeat_xai.engine.kernels import Cosine, Linear, Polynomial, Rbf
from repeat_xai.engine.masks import Grid
from repeat_xai.engine.targets import Contrast, Direction, direction_between
from repeat_xai.errors import RepeatError
from repeat_xai.methods.bases.attribution import Attribution
from repeat_xai.methods.bases.features import Squares, Superpixels, Values
from repeat_xai.methods.bases.gradient_shap import GradientShap
from repeat_xai.methods.bases.guided_backprop import GuidedBackprop
from repeat_xai.methods.bases.input_x_gradient import InputXGradient
from repeat_xai.methods.bases.integrated_gradients import IntegratedGradients
from repeat_xai.methods.bases.kernel_shap import KernelShap
from repeat_xai.methods.bases.lime import Lime
from repeat_xai.methods.bases.occlusion import Occlusion
from repeat_xai.methods.bases.saliency import Saliency
from repeat_xai.methods.bases.smoothgrad import SmoothGrad
from repeat_xai.methods.explain_pictures import explain, explain_many, explain_many_targets, explain_targets
from repeat_xai.methods.match import match
from repeat_xai.methods.perturbations import Crops, Ensemble, Flips, InputDropout, McDropout, Noise
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.spread import Spread
from repeat_xai.types import Explanation, Image, Match, Preprocessing
from repeat_xai.types.text import Text
from repeat_xai.version import __version__

__all__ = [
    "Attribution",
    "Contrast",
    "Cosine",
    "Crops",
    "Direction",
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
    "Match",
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
    "Text",
    "Values",
    "__version__",
    "direction_between",
    "explain",
    "explain_many",
    "explain_many_targets",
    "explain_targets",
    "load_encoder",
    "load_image",
    "map_to_photo",
    "mask_bounds",
    "match",
    "metrics",
]
