"""The pages and files of a job."""

import json
import re
from dataclasses import replace

import pytest
from pages import explanation

import repeat_xai as rx
from repeat_xai.app.job_pages import encoder_labels, result_pages, save_files


def by_encoder(name, weights, seed=1, **options):
    made = explanation(seed, **options)
    return replace(made, provenance={**made.provenance, "encoder": {"name": name, "weights": weights}})


def titles(page):
    return [json.loads(f'"{title}"') for title in re.findall(r'"title": "([^"]*)", "budget"', page)]


def test_methods_of_one_encoder_share_a_page():
    both = [by_encoder("toy", "a"), by_encoder("toy", "a", votes=False)]
    (page,) = result_pages(both, is_preview=True)
    assert titles(page) == ["REPEAT", "RELAX"]
    assert '"facts": ["toy"]' in page
    assert page.count("preview: ") == 1


@pytest.mark.slow
def test_encoders_share_a_page_if_they_see_the_same_part_of_the_photo():
    same = [by_encoder("toy", "a"), by_encoder("other", "b")]
    (page,) = result_pages(same, is_preview=False)
    assert titles(page) == ["REPEAT · toy", "REPEAT · other"]
    assert "preview: " not in page
    apart = [by_encoder("toy", "a"), by_encoder("other", "b", box=(0.0, 0.0, 20.0, 20.0))]
    assert [titles(page) for page in result_pages(apart, is_preview=False)] == [["REPEAT · toy"], ["REPEAT · other"]]


def test_encoders_of_one_name_are_labelled_with_their_weights():
    explanations = [by_encoder("toy", "a"), by_encoder("toy", "b"), by_encoder("other", "a")]
    assert encoder_labels(explanations) == ["toy, a", "toy, b", "other"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("explanations", "files"),
    [
        ([by_encoder("toy", "a")], {"maps": "cat.npz", "panel": "cat.png"}),
        (
            [by_encoder("toy", "a"), by_encoder("toy", "a", votes=False)],
            {
                "REPEAT: maps": "cat-1.npz",
                "REPEAT: panel": "cat-1.png",
                "RELAX: maps": "cat-2.npz",
                "RELAX: panel": "cat-2.png",
                "side by side": "cat.comparison.png",
            },
        ),
        (
            [by_encoder("toy", "a"), by_encoder("other", "a")],
            {
                "REPEAT with toy: maps": "cat-1.npz",
                "REPEAT with toy: panel": "cat-1.png",
                "REPEAT with other: maps": "cat-2.npz",
                "REPEAT with other: panel": "cat-2.png",
            },
        ),
    ],
)
def test_files_are_named_after_the_photo(tmp_path, explanations, files):
    assert {label: path.name for label, path in save_files(explanations, tmp_path)} == files
    assert {path.name for path in tmp_path.iterdir()} == set(files.values())
    maps = sorted(tmp_path.glob("*.npz"))
    assert [rx.Explanation.load(path).importance.tolist() for path in maps] == [
        explanation.importance.tolist() for explanation in explanations
    ]
