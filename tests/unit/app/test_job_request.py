"""What is asked for, as it is written."""

import pytest

import repeat_xai as rx
from repeat_xai.app.job_request import NAMES, Budget, Wanted, knows
from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.settings import Network


def test_every_method_on_offer_can_be_asked_for():
    network = Network(name="efficientnet_lite0")
    made = {name: Wanted(network=network, method=name).explainer for name in NAMES}
    assert made["repeat"] == rx.Repeat()
    assert made["relax"] == rx.Relax()
    assert made["lime"] == rx.Spread(base=rx.Lime())
    assert made["repeat:lime"] == rx.Repeat(base=rx.Lime(), estimator="exact")
    assert "repeat:saliency" not in NAMES


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"method": "repeat:saliency"}, "Saliency finds the same"),
        ({"seed": -1}, "seed must be a whole number of at least 0, not -1"),
        ({"budget": Budget(masks=0)}, "masks must be a whole number of at least 1, not 0"),
        ({"budget": Budget(repeats=0)}, "repeats must be"),
        ({"budget": Budget(pool=-1)}, "pool must be"),
        ({"method": "saliency", "budget": Budget(passes=1)}, "passes must be"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(changes, words):
    with pytest.raises(ConfigurationError, match=words):
        Wanted(**{"network": Network(name="efficientnet_lite0"), "method": "repeat"} | changes)


def test_only_what_a_method_knows_of_can_be_filled_in():
    assert knows({"repeat"}, "fast") == (True, True, True, True, False)
    assert knows({"relax"}, "fast") == (False, False, True, False, False)
    assert knows({"repeat:lime"}, "fast") == (False, False, False, True, False)
    assert knows({"relax", "saliency"}, "exact") == (False, False, True, False, True)
