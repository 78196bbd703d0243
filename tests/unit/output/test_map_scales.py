"""Figures and pages draw a map with the same colours and limits."""

from dataclasses import replace

import pytest
import torch
from pages import explanation

from repeat_xai.output.figures import panel
from repeat_xai.output.map_scales import (
    SIGNED,
    VOTE_SHARE_LIMITS,
    VOTE_VARIANCE_LIMITS,
    importance_scale,
    known_uncertainty,
    robust_limits,
    uncertainty_limits,
)
from repeat_xai.output.page.layers import layers


def test_votes_have_fixed_limits_and_other_maps_their_own_range():
    votes, other = explanation(), explanation(votes=False)
    assert (
        (importance_scale(votes)[1], uncertainty_limits(votes))
        == (VOTE_SHARE_LIMITS, VOTE_VARIANCE_LIMITS)
        == ((0, 1), (0, 0.25))
    )
    assert importance_scale(other)[1] == robust_limits(other.importance)
    assert uncertainty_limits(other) == robust_limits(other.uncertainty)


def test_signed_importance_has_limits_around_zero():
    made = explanation(votes=False)
    signed = replace(made, importance=made.importance - made.importance.mean())
    colours, (low, high) = importance_scale(signed)
    assert colours == SIGNED
    assert -low == high == robust_limits(signed.importance.abs())[1]


def test_a_map_of_nan_is_an_unknown_uncertainty():
    made = explanation(votes=False)
    unknown = replace(made, uncertainty=torch.full_like(made.uncertainty, torch.nan))
    assert known_uncertainty(made) is made.uncertainty
    assert known_uncertainty(unknown) is None
    assert uncertainty_limits(unknown) == VOTE_SHARE_LIMITS


@pytest.mark.parametrize("votes", [True, False])
def test_the_page_and_the_panel_use_the_same_limits(votes):
    made = explanation(votes=votes)
    drawn = [axes.images[-1] for axes in panel(made).axes[1:3]]
    for image, layer in zip(drawn, layers(made, level=0.95), strict=False):
        assert image.get_clim() == pytest.approx(layer.limits)
        assert image.get_cmap().name == layer.colours
