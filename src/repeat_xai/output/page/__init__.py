"""Pages for a browser, each in one file that needs no network, and the view of an explanation in a notebook."""

from repeat_xai.output.page.images_page import expect_replaceable_page, write_explain_page, write_screen_page
from repeat_xai.output.page.notebook import frame, picture
from repeat_xai.output.page.tables_page import FailedRow, NamedTable, write_tables_page

__all__ = [
    "FailedRow",
    "NamedTable",
    "expect_replaceable_page",
    "frame",
    "picture",
    "write_explain_page",
    "write_screen_page",
    "write_tables_page",
]
