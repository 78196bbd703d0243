"""The components of the page."""

import asyncio

import pytest
from apps import handler_in

pytest.importorskip("gradio", reason="Gradio is not installed: install the extra [serve]")

from repeat_xai.app.events import build_page
from repeat_xai.app.job_request import offered_methods
from repeat_xai.app.layout import FormFields, read_asset


@pytest.fixture(scope="module")
def components(tmp_path_factory):
    async def build():  # Gradio asks for an event loop
        return build_page(handler_in(tmp_path_factory.mktemp("app")), size=None)

    blocks = asyncio.run(build())
    return {component.elem_id: component for component in blocks.blocks.values() if component.elem_id}


def test_every_field_has_a_label_and_a_help_of_full_sentences(components):
    for name in FormFields._fields:
        field = components[name.replace("_", "-")]
        assert field.label
        assert field.info[0].isupper()
        assert field.info.endswith(".")


def test_every_method_is_offered_under_a_label_for_readers(components):
    labels, names = zip(*components["method"].choices, strict=True)
    assert list(names) == offered_methods()
    assert labels[:2] == ("REPEAT", "RELAX")
    assert "Integrated gradients" in labels


def test_the_guide_explains_each_word_and_what_it_does_not_mean():
    guide = " ".join(read_asset("guide.html").lower().split())
    for word in ("important", "uncertain", "certainly important", "undecided", "dashed frame"):
        assert word in guide
    assert guide.count("it does not mean") == 3
