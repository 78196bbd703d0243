"""The layers of the page say in words what their colours mean."""

import re
from dataclasses import replace

import pytest
from pages import explanation

from repeat_xai.output.figures import panel
from repeat_xai.output.page.layers import layers


def with_votes(made, votes):
    return replace(made, provenance={**made.provenance, "method": {**made.provenance["method"], "votes": votes}})


def test_the_note_on_weighted_votes_says_how_uncertain_unanimous_pixels_are():
    made = explanation()
    unanimous = made.uncertainty[made.vote_share == 1].max().item()
    assert unanimous > 0.05
    note = layers(made, level=0.95)[1].note
    assert "0 where the repeats agree" not in note
    assert f"up to {unanimous:.2g}" in note


def test_the_note_on_weighted_votes_without_unanimous_pixels_names_no_number():
    made = explanation()
    share = made.vote_share.clamp(max=0.9)
    note = layers(replace(made, vote_share=share), level=0.95)[1].note
    assert "above 0 too" in note


def test_the_note_on_binary_votes_says_that_unanimous_pixels_are_certain():
    note = layers(with_votes(explanation(), "binary"), level=0.95)[1].note
    assert "It is 0 where all repeats agree" in note


@pytest.mark.parametrize("votes", [True, False])
def test_the_note_on_uncertainty_names_its_maximum(votes):
    made = explanation(votes=votes)
    note = layers(made, level=0.95)[1].note
    assert f"maximum is {made.uncertainty.max().item():.3g}" in note
    assert ("at most 0.25" in note) == votes


@pytest.mark.parametrize(("votes", "cuts"), [("weighted", []), ("binary", [0.05, 0.95])])
def test_importance_has_cuts_only_where_it_is_the_share_that_verdicts_are_made_of(votes, cuts):
    importance, _, verdict = layers(with_votes(explanation(), votes), level=0.95)
    assert [value for value, _ in importance.cuts] == pytest.approx(cuts)
    assert [value for value, _ in verdict.cuts] == pytest.approx([0.05, 0.95])


def test_a_method_without_uncertainty_says_so():
    made = explanation(votes=False)
    unknown = replace(made, uncertainty=None)
    _, uncertainty, certain = layers(unknown, level=0.95)
    assert "does not say how uncertain" in uncertainty.note
    assert "does not say how uncertain" in certain.note
    assert uncertainty.cuts == ()


def test_every_note_is_made_of_whole_sentences():
    for made in (explanation(), with_votes(explanation(), "binary"), explanation(votes=False)):
        for layer in layers(made, level=0.9):
            # A sentence begins with a capital letter, or with the symbol p.
            assert re.fullmatch(r"([A-Zp].*?[.] ?)+", layer.note), layer.note


@pytest.mark.parametrize("votes", [True, False])
def test_the_page_and_the_panel_have_the_same_colours_and_limits(votes):
    made = explanation(votes=votes)
    drawn = [axes.images[-1] for axes in panel(made).axes[1:3]]
    for image, layer in zip(drawn, layers(made, level=0.95), strict=False):
        assert image.get_clim() == pytest.approx(layer.limits)
        assert image.get_cmap().name == layer.colours
