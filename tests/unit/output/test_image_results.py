"""Existing files say which image they belong to, and which of them is damaged or missing."""

import json
from dataclasses import replace

import PIL.Image
import pytest
from hostile.damages import cut, deleted, flipped, own_picture, with_fields, with_map, with_text
from matplotlib.figure import Figure
from pages import explanation

from repeat_xai.files.reading import read_png
from repeat_xai.output.image_results import ExistingResults, ResultFiles, is_users_own
from repeat_xai.output.results_folder import draw

DIGEST, OTHER = "a" * 64, "b" * 64


def results(folder, digest=DIGEST):
    """Write the results of an image as a folder of results holds them, and return their files."""
    files = ResultFiles.of(folder, "cat")
    made_up = explanation()
    provenance = {**made_up.provenance, "image": {"sha256": digest}, "encoder_calls": 3, "seconds": 0.5}
    replace(made_up, provenance=provenance, photo=replace(made_up.photo, digest=digest)).save(files.maps)
    draw(Figure((0.5, 0.5)), files.panel, key=digest)
    files.provenance.write_text(json.dumps({**provenance, "level": 0.95}))
    return files


@pytest.fixture
def files(tmp_path):
    return results(tmp_path)


def test_where_there_are_no_results_those_of_any_image_may_be_written(tmp_path):
    files = ResultFiles.of(tmp_path, "cat")
    assert ExistingResults(files).may_be_replaced_by(DIGEST)
    assert ExistingResults(files).flaw(DIGEST) == ""
    for file in files:
        file.write_bytes(b"")
    assert ExistingResults(files).may_be_replaced_by(DIGEST)
    assert ExistingResults(files).flaw(DIGEST) == f"{files.provenance}: damaged"


def test_whole_results_belong_to_their_image_alone_and_have_no_flaw(files):
    existing = ExistingResults(files)
    assert existing.may_be_replaced_by(DIGEST)
    assert not existing.may_be_replaced_by(OTHER)
    assert existing.flaw(DIGEST) == ""
    assert existing.record["encoder_calls"] == 3


@pytest.mark.parametrize(
    ("part", "damage", "flaw"),
    [
        ("provenance", deleted, "missing"),
        ("provenance", cut(0.5), "damaged"),
        ("provenance", with_fields(image={"sha256": OTHER}), "damaged"),
        ("provenance", with_fields(encoder_calls=-1), "damaged"),
        ("maps", deleted, "missing"),
        ("maps", flipped(0.5), "damaged"),
        ("maps", with_map("importance", lambda values: values + float("inf")), "damaged"),
        ("panel", deleted, "missing"),
        ("panel", flipped(0.5), "damaged"),
        ("panel", lambda path: draw(Figure((0.5, 0.5)), path, key=OTHER), "damaged"),
    ],
)
def test_results_still_belong_to_their_image_when_one_file_is_damaged(files, part, damage, flaw):
    damage(getattr(files, part))
    assert ExistingResults(files).may_be_replaced_by(DIGEST)
    assert not ExistingResults(files).may_be_replaced_by(OTHER)
    assert ExistingResults(files).flaw(DIGEST) == f"{getattr(files, part)}: {flaw}"


def test_a_provenance_that_differs_from_that_of_the_maps_is_damaged(files):
    with_text("provenance", seed=5)(files.maps)
    assert ExistingResults(files).flaw(DIGEST) == f"{files.provenance}: damaged"


@pytest.mark.parametrize("clock", [{"finished": "2999-01-01T00:00:00Z"}, {"seconds": 7.5}])
def test_times_may_differ_between_provenance_and_maps(files, clock):
    with_fields(**clock)(files.provenance)
    assert ExistingResults(files).flaw(DIGEST) == ""


def test_a_picture_of_the_users_own_is_not_replaced(files):
    own_picture(files.panel)
    assert is_users_own(files.panel)
    assert not ExistingResults(files).may_be_replaced_by(DIGEST)
    for part in ("maps", "provenance"):
        deleted(getattr(files, part))
    files.panel.write_text("notes")
    assert not is_users_own(files.panel)
    assert not ExistingResults(files).may_be_replaced_by(DIGEST), "nothing shows that the file is ours"


def test_nothing_is_replaced_where_three_files_name_three_images(files, tmp_path):
    with_fields(image={"sha256": OTHER})(files.provenance)
    draw(Figure((0.5, 0.5)), files.panel, key="c" * 64)
    assert not any(ExistingResults(files).may_be_replaced_by(digest) for digest in (DIGEST, OTHER, "c" * 64))


def test_the_texts_of_a_damaged_png_can_be_read(files):
    whole = read_png(files.panel, max_bytes=2**20)
    assert whole.whole
    assert whole.texts["Source"] == DIGEST
    with PIL.Image.open(files.panel) as picture:
        assert picture.info["Source"] == DIGEST
    cut(0.9)(files.panel)
    assert read_png(files.panel, max_bytes=2**20) == whole._replace(whole=False)
