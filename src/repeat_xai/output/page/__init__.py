"""Explanations → a page to look into them, in one file that needs nothing else. Nothing is explained here."""

from repeat_xai.output.page.images_page import expect_free, explained, screened
from repeat_xai.output.page.notebook import frame, picture
from repeat_xai.output.page.tables_page import Written, tabulated

__all__ = ["Written", "expect_free", "explained", "frame", "picture", "screened", "tabulated"]
