"""What the app says leads where it says."""

import re
from html import unescape
from urllib.parse import unquote

import pytest

from repeat_xai.serve import markup


@pytest.mark.parametrize("name", ["my cat.npz", "a#b.npz", "100%25.npz", "why?.npz", '"猫" & 𠮷.npz'])
def test_a_link_leads_to_the_file_whatever_it_is_called(name):
    ((address, words),) = re.findall('href="(.*?)">(.*?)</a>', markup.downloads([("maps", f"key/{name}")]))
    assert not set('#?&"') & set(address)
    assert unquote(address) == f"results/key/{name}"
    assert unescape(words) == name
