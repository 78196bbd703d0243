"""What lies in the place of an image's results: of which image it is, and what of it is damaged."""

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
    """ResultFiles of an image as a gallery writes them."""
    files = ResultFiles.of(folder, "cat")
    about = explanation()
    made = {**about.provenance, "image": {"sha256": digest}, "encoder_calls": 3, "seconds": 0.5}
    about = replace(about, provenance=made, photo=replace(about.photo, digest=digest))
    about.save(files.maps)
    draw(Figure((0.5, 0.5)), files.panel, key=digest)
    files.provenance.write_text(json.dumps({**made, "level": 0.95}))
    return files


@pytest.fixture
def files(tmp_path):
    return results(tmp_path)


def test_where_nothing_lies_any_image_may_be_written(tmp_path):
    files = ResultFiles.of(tmp_path, "cat")
    assert ExistingResults(files).is_for(DIGEST)
    assert ExistingResults(files).flaw(DIGEST) == ""
    for file in files:
        file.write_bytes(b"")
    assert ExistingResults(files).is_for(DIGEST)
    assert ExistingResults(files).flaw(DIGEST) == f"{files.provenance}: damaged"


def test_whole_results_are_of_their_image_alone_and_have_no_flaw(files):
    place = ExistingResults(files)
    assert place.is_for(DIGEST)
    assert not place.is_for(OTHER)
    assert place.flaw(DIGEST) == ""
    assert place.record["encoder_calls"] == 3


@pytest.mark.parametrize(
    ("part", "damage", "said"),
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
def test_a_place_stays_its_images_when_one_file_is_damaged(files, part, damage, said):
    damage(getattr(files, part))
    assert ExistingResults(files).is_for(DIGEST)
    assert not ExistingResults(files).is_for(OTHER)
    assert ExistingResults(files).flaw(DIGEST) == f"{getattr(files, part)}: {said}"


def test_a_provenance_that_tells_other_things_than_the_maps_is_damaged(files):
    with_text("provenance", seed=5)(files.maps)
    assert ExistingResults(files).flaw(DIGEST) == f"{files.provenance}: damaged"


@pytest.mark.parametrize("clock", [{"finished": "2999-01-01T00:00:00Z"}, {"seconds": 7.5}])
def test_times_may_differ(files, clock):
    with_fields(**clock)(files.provenance)
    assert ExistingResults(files).flaw(DIGEST) == ""


def test_a_picture_of_the_users_own_keeps_its_place(files):
    own_picture(files.panel)
    assert is_users_own(files.panel)
    assert not ExistingResults(files).is_for(DIGEST)
    for part in ("maps", "provenance"):
        deleted(getattr(files, part))
    files.panel.write_text("notes")
    assert not is_users_own(files.panel)
    assert not ExistingResults(files).is_for(DIGEST), "nothing says that it is ours"


def test_of_three_files_that_say_three_things_no_image_may_be_written(files, tmp_path):
    with_fields(image={"sha256": OTHER})(files.provenance)
    draw(Figure((0.5, 0.5)), files.panel, key="c" * 64)
    assert not any(ExistingResults(files).is_for(digest) for digest in (DIGEST, OTHER, "c" * 64))


def test_a_png_tells_its_texts_also_when_it_is_damaged(files):
    whole = read_png(files.panel, max_bytes=2**20)
    assert whole.whole
    assert whole.texts["Source"] == DIGEST
    with PIL.Image.open(files.panel) as picture:
        assert picture.info["Source"] == DIGEST
    cut(0.9)(files.panel)
    assert read_png(files.panel, max_bytes=2**20) == whole._replace(whole=False)
