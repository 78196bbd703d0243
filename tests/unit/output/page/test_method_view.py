"""The view of one explanation: which maps it stores, its summary, and how it was made without any folders."""

import re
from dataclasses import replace

import pytest
import torch
from pages import explanation

from repeat_xai.output.figures import panel
from repeat_xai.output.figures.captions import movement
from repeat_xai.output.page.method_view import method_view, verdict_summary


def test_uncertainty_other_than_p_times_1_minus_p_is_stored():
    made = explanation()
    other = replace(made, uncertainty=made.uncertainty + 0.01)
    assert "uncertainty" not in method_view(made, level=0.95, provenance={}).maps
    assert "uncertainty" in method_view(other, level=0.95, provenance={}).maps


def test_the_summary_counts_the_pixels_of_each_verdict():
    made = explanation(3)
    verdict = made.verdict(0.9)
    shares = [100 * (verdict == value).double().mean().item() for value in (1, 0, -1)]
    summary = method_view(made, level=0.9, provenance={}).summary
    assert [float(number) for number in re.findall(r"(\d+)\s%", summary)] == pytest.approx(shares, abs=0.5)
    assert re.fullmatch(
        r".* of the pixels are certainly important, .* undecided and .* certainly unimportant\.", summary
    )


def test_a_few_pixels_are_not_called_none():
    made = explanation()
    share = torch.full_like(made.vote_share, 0.5)
    share[0, 0] = 1
    one_pixel = replace(made, vote_share=share)
    assert verdict_summary(one_pixel, 0.95) == "under 1\u00a0% certainly important, over 99\u00a0% undecided"
    assert method_view(one_pixel, level=0.95, provenance={}).summary.startswith("Under 1")


@pytest.mark.parametrize(("known", "words"), [(True, "no verdict"), (False, "neither an uncertainty nor a verdict")])
def test_methods_without_votes_have_no_verdict_to_sum_up(known, words):
    made = explanation(votes=False)
    if not known:
        made = replace(made, uncertainty=None)
    shown = method_view(made, level=0.95, provenance={})
    assert words in shown.summary
    assert set(shown.maps) == {"importance", "uncertainty", "certain"}
    assert verdict_summary(made, 0.95) == ""


def test_the_provenance_holds_file_names_without_folders():
    record = {
        "photo": {"name": "my photos/cat.png"},
        "encoder": {"name": "onnx:/home/ann/net.onnx", "weights": "/home/ann lee/net.safetensors"},
        "files": ["/home/ann/a.npz", 3],
        "seed": 0,
        "pool": None,
    }
    assert method_view(explanation(), level=0.95, provenance=record).provenance == (
        ("photo.name", "cat.png"),
        ("encoder.name", "onnx:net.onnx"),
        ("encoder.weights", "net.safetensors"),
        ("files", "a.npz, 3"),
        ("seed", "0"),
        ("pool", "none"),
    )


@pytest.mark.parametrize(("movement", "warns"), [(0.234, False), (0.0043, True), (None, False)])
def test_a_representation_that_hardly_changes_is_warned_of(movement, warns):
    made = explanation()
    ran = {} if movement is None else {"code_movement": movement}
    shown = method_view(replace(made, provenance={**made.provenance, "ran": ran}), level=0.95, provenance={})
    assert shown.warns == warns
    assert ("by 23\u00a0% on average" in shown.movement) == (movement == 0.234)
    assert ("0.43\u00a0%" in shown.movement and "very little" in shown.movement) == warns
    assert (shown.movement == "") == (movement is None)


def test_panel_and_page_warn_of_a_flat_photo_in_the_same_words():
    made = explanation()
    flat = replace(made, provenance={**made.provenance, "ran": {"code_movement": 0.3}, "photo": {"contrast": 0.001}})
    note = movement(flat)
    assert "single colour" in note.warning
    shown = method_view(flat, level=0.95, provenance={})
    assert (shown.movement, shown.warns) == (f"{note}.", True)
    assert str(note) in panel(flat).get_suptitle()
