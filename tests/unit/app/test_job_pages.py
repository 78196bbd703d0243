"""Results side by side: on one page where they see the same, and in files of their own."""

import json
import re
from dataclasses import replace

import pytest
from pages import explanation

import repeat_xai as rx
from repeat_xai.app.job_pages import encoders, pages, save


def by(name, weights, seed=1, **options):
    found = explanation(seed, **options)
    return replace(found, provenance={**found.provenance, "encoder": {"name": name, "weights": weights}})


def titles(page):
    return [json.loads(f'"{title}"') for title in re.findall(r'"title": "([^"]*)", "budget"', page)]


def test_methods_of_one_encoder_share_a_page():
    both = [by("toy", "a"), by("toy", "a", votes=False)]
    (page,) = pages(both, so_far=True)
    assert titles(page) == ["REPEAT", "RELAX"]
    assert '"facts": ["toy"]' in page
    assert page.count("so far") == 1


def test_encoders_that_see_the_same_share_a_page_and_others_do_not():
    same = [by("toy", "a"), by("other", "b")]
    (page,) = pages(same, so_far=False)
    assert titles(page) == ["REPEAT · toy", "REPEAT · other"]
    assert "so far" not in page
    apart = [by("toy", "a"), by("other", "b", box=(0.0, 0.0, 20.0, 20.0))]
    assert [titles(page) for page in pages(apart, so_far=False)] == [["REPEAT · toy"], ["REPEAT · other"]]


def test_weights_tell_encoders_of_one_name_apart():
    assert encoders([by("toy", "a"), by("toy", "b"), by("other", "a")]) == ["toy, a", "toy, b", "other"]


@pytest.mark.parametrize(
    ("found", "files"),
    [
        ([by("toy", "a")], {"maps": "cat.npz", "panel": "cat.png"}),
        (
            [by("toy", "a"), by("toy", "a", votes=False)],
            {
                "REPEAT: maps": "cat-1.npz",
                "REPEAT: panel": "cat-1.png",
                "RELAX: maps": "cat-2.npz",
                "RELAX: panel": "cat-2.png",
                "side by side": "cat.comparison.png",
            },
        ),
        (
            [by("toy", "a"), by("other", "a")],
            {
                "REPEAT by toy: maps": "cat-1.npz",
                "REPEAT by toy: panel": "cat-1.png",
                "REPEAT by other: maps": "cat-2.npz",
                "REPEAT by other: panel": "cat-2.png",
            },
        ),
    ],
)
def test_files_are_named_after_the_photo(tmp_path, found, files):
    assert {label: path.name for label, path in save(found, tmp_path)} == files
    assert {path.name for path in tmp_path.iterdir()} == set(files.values())
    maps = sorted(tmp_path.glob("*.npz"))
    assert [rx.Explanation.load(path).importance.tolist() for path in maps] == [
        one.importance.tolist() for one in found
    ]
