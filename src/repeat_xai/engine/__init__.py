"""Many masked copies of images through an encoder, at the encoder's own speed."""

from repeat_xai.engine.batches import Plan
from repeat_xai.engine.stream import Answer, Estimate, only, stream

__all__ = ["Answer", "Estimate", "Plan", "only", "stream"]
