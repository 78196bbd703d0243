"""The classes that everything else is about: encoders, images, tasks, answers and explanations."""

from typing import TYPE_CHECKING

from repeat_xai.types.answer import Answer, Task, only_result, result_of
from repeat_xai.types.encoder import Encoder, expect, expect_encoder
from repeat_xai.types.explanation import MOST_PIXELS, ROUNDING, Explanation
from repeat_xai.types.match import Match, Partner
from repeat_xai.types.photo import MOST_SIDE, Image, Photo
from repeat_xai.types.preprocessing import Interpolation, Preprocessing

if TYPE_CHECKING:
    from repeat_xai.types.explanation import Map as Map

__all__ = [
    "MOST_PIXELS",
    "MOST_SIDE",
    "ROUNDING",
    "Answer",
    "Encoder",
    "Explanation",
    "Image",
    "Interpolation",
    "Match",
    "Partner",
    "Photo",
    "Preprocessing",
    "Task",
    "expect",
    "expect_encoder",
    "only_result",
    "result_of",
]
