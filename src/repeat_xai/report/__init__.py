"""Explanations → a page to look into them, in one file that needs nothing else. Nothing is explained here."""

from repeat_xai.report.folder import expect_free, explained, screened
from repeat_xai.report.notebook import frame, picture

__all__ = ["expect_free", "explained", "frame", "picture", "screened"]
