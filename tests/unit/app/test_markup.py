"""The HTML of the page."""

import re
from html import unescape
from urllib.parse import unquote

import pytest

from repeat_xai.app import markup


@pytest.mark.parametrize("name", ["my cat.npz", "a#b.npz", "100%25.npz", "why?.npz", '"猫" & 𠮷.npz'])
def test_a_link_leads_to_its_file_whatever_the_name(name):
    ((address, text),) = re.findall('href="(.*?)">(.*?)</a>', markup.download_links([("maps", f"key/{name}")]))
    assert not set('#?&"') & set(address)
    assert unquote(address) == f"results/key/{name}"
    assert unescape(text) == name


def test_a_snippet_is_shown_as_text_and_not_as_markup():
    html = markup.snippet_boxes("repeat-xai explain '<b>&amp;.png'", "rx.load_image('<b>&amp;.png')")
    snippets = re.findall("<pre>(.*?)</pre>", html)
    assert [unescape(re.sub("</?span>", "", snippet)) for snippet in snippets] == [
        "repeat-xai explain '<b>&amp;.png'",
        "rx.load_image('<b>&amp;.png')",
    ]
    assert "<b>" not in html
