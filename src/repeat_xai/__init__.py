"""Which pixels of an image does an encoder's representation depend on, and how sure are we that each one matters?"""

from repeat_xai import budget
from repeat_xai.encoders import load_encoder
from repeat_xai.errors import RepeatError
from repeat_xai.explain.repeat import Repeat
from repeat_xai.images import load_image, map_to_photo
from repeat_xai.importance.relax import Relax
from repeat_xai.masks import Grid
from repeat_xai.similarity import Cosine, Linear, Polynomial, Rbf
from repeat_xai.types import Explanation, Image, Preprocessing
from repeat_xai.version import __version__

__all__ = [
    "Cosine",
    "Explanation",
    "Grid",
    "Image",
    "Linear",
    "Polynomial",
    "Preprocessing",
    "Rbf",
    "Relax",
    "Repeat",
    "RepeatError",
    "__version__",
    "budget",
    "load_encoder",
    "load_image",
    "map_to_photo",
]
