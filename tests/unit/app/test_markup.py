"""What the app says leads where it says."""

import re
from html import unescape
from urllib.parse import unquote

import pytest

from repeat_xai.app import markup


@pytest.mark.parametrize("name", ["my cat.npz", "a#b.npz", "100%25.npz", "why?.npz", '"猫" & 𠮷.npz'])
def test_a_link_leads_to_the_file_whatever_it_is_called(name):
    ((address, words),) = re.findall('href="(.*?)">(.*?)</a>', markup.downloads([("maps", f"key/{name}")]))
    assert not set('#?&"') & set(address)
    assert unquote(address) == f"results/key/{name}"
    assert unescape(words) == name


def test_what_is_copied_is_what_is_said_and_no_markup():
    said = markup.words("repeat-xai explain '<b>&amp;.png'", "rx.load_image('<b>&amp;.png')")
    commands = re.findall("<pre>(.*?)</pre>", said)
    assert [unescape(re.sub("</?span>", "", command)) for command in commands] == [
        "repeat-xai explain '<b>&amp;.png'",
        "rx.load_image('<b>&amp;.png')",
    ]
    assert "<b>" not in said
