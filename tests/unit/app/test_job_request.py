"""Requests for explanations."""

import pytest

import repeat_xai as rx
from repeat_xai.app.job_request import JobRequest, JobSettings, method_label, offered_methods, used_settings
from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.methods.method_names import METHODS


def test_every_method_on_offer_can_be_requested():
    spec = EncoderSpec(name="efficientnet_lite0")
    explainers = {name: JobRequest(encoder_spec=spec, method=name).explainer for name in offered_methods()}
    assert explainers["repeat"] == rx.Repeat()
    assert explainers["relax"] == rx.Relax()
    assert explainers["lime"] == rx.Spread(base=rx.Lime())
    assert explainers["repeat:lime"] == rx.Repeat(base=rx.Lime(), estimator="exact")
    assert "repeat:saliency" not in offered_methods()


def test_every_method_has_a_label_of_its_own():
    assert len({method_label(name) for name in offered_methods()}) == len(offered_methods())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"method": "repeat:saliency"}, "Saliency"),
        ({"seed": -1}, "seed must be"),
        ({"settings": JobSettings(masks=0)}, "masks must be"),
        ({"settings": JobSettings(repeats=0)}, "repeats must be"),
        ({"settings": JobSettings(budget=-1)}, "budget must be"),
        ({"method": "saliency", "settings": JobSettings(passes=1)}, "passes must be"),
    ],
)
def test_an_invalid_request_is_refused_when_it_is_made(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        JobRequest(**{"encoder_spec": EncoderSpec(name="efficientnet_lite0"), "method": "repeat"} | changes)


def test_only_settings_that_a_method_uses_are_shown():
    assert used_settings({"repeat"}, "fast") == (True, True, True, True, False)
    assert used_settings({"relax"}, "fast") == (False, False, True, False, False)
    assert used_settings({"repeat:lime"}, "fast") == (False, False, False, True, False)
    assert used_settings({"relax", "saliency"}, "exact") == (False, False, True, False, True)


def test_a_method_registered_while_the_app_runs_is_on_offer(monkeypatch):
    monkeypatch.setitem(METHODS, "mine", rx.Lime(samples=30))
    assert {"mine", "repeat:mine"} <= set(offered_methods())
    assert used_settings({"repeat:mine"}, "fast") == (False, False, False, True, False)
    assert used_settings({"once:mine"}, "fast").passes is False
