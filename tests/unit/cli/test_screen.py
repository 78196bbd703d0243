"""Screening a folder: the images that the encoder is most uncertain about come first."""

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import SMALL, run_here, without_image_warnings
from skimage import data

import repeat_xai as rx
from repeat_xai.errors import ImageError
from repeat_xai.output import screening
from repeat_xai.output.figures import contact_sheet
from repeat_xai.output.image_results import ResultFiles
from repeat_xai.output.results_folder import ImageOutcome
from repeat_xai.output.screening import Ranked, Score, ranked, screen_images, write
from repeat_xai.types import Photo

FEW = ["--masks", 40, "--repeats", 2]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with six crops of one photo."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(6):
        PIL.Image.fromarray(data.chelsea()[20 * i : 20 * i + 160, 20 * i : 20 * i + 200]).save(photos / f"crop{i}.png")
    return photos


def screen(folder, monkeypatch, capsys, *options):
    out = folder.parent / "out"
    return (*run_here(monkeypatch, capsys, "screen", folder, "--out", out, *SMALL, *FEW, *options), out)


def rows(out):
    with (out / "screen.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_images_are_ranked_by_the_mean_of_their_uncertainty(folder, monkeypatch, capsys):
    status, output, out = screen(folder, monkeypatch, capsys)
    assert (status, without_image_warnings(output.err)) == (0, "")
    table = rows(out)
    scores = [float(row["uncertainty"]) for row in table]
    assert scores == sorted(scores, reverse=True)
    assert [row["rank"] for row in table] == list("123456")
    for row, score in zip(table, scores, strict=True):
        assert row["panel"] == f"images/{Path(row['image']).name}"
        maps = rx.Explanation.load((out / row["panel"]).with_suffix(".npz"))
        assert maps.uncertainty.double().mean().item() == pytest.approx(score, rel=1e-6)
        assert (row["share_of_reference_below"], row["failure"]) == ("", "")
    made = json.loads((out / "screen.json").read_text())
    assert (made["images"], made["failed"], made["partial"]) == (6, 0, False)
    assert made["statement"] in output.out
    assert sum(made["mixture"]["weights"]) == pytest.approx(1)
    with PIL.Image.open(out / "screen.png") as picture:
        assert np.asarray(picture).std() > 10


@pytest.mark.slow
def test_a_second_run_continues_and_may_add_reference_images(folder, monkeypatch, capsys):
    screen(folder, monkeypatch, capsys)
    known = folder.parent / "known"
    known.mkdir()
    PIL.Image.fromarray(data.coffee()).save(known / "coffee.png")
    PIL.Image.fromarray(data.rocket()).save(known / "rocket.jpg")
    status, output, out = screen(folder, monkeypatch, capsys, "--known", known, "--aggregate", "top")
    assert status == 0
    assert output.out.count("already done") == 6
    assert {row["share_of_reference_below"] for row in rows(out)} <= {"0.000000", "0.500000", "1.000000"}


@pytest.mark.slow
@pytest.mark.parametrize("reference", [True, False])
def test_the_parquet_has_the_rows_of_the_csv_with_every_digit(folder, monkeypatch, capsys, reference):
    status, _, out = screen(folder, monkeypatch, capsys, *(["--known", folder / "crop0.png"] if reference else []))
    assert status == 0
    table = pq.read_table(out / "screen.parquet")
    text, number = pa.string(), pa.float64()
    assert table.column_names == list(rows(out)[0])
    assert table.schema.types == [pa.int64(), text, number, number, number, text, text]
    for plain, row in zip(table.to_pylist(), rows(out), strict=True):
        assert (str(plain["rank"]), plain["image"], plain["panel"]) == (row["rank"], row["image"], row["panel"])
        maps = rx.Explanation.load((out / row["panel"]).with_suffix(".npz"))
        assert plain["uncertainty"] == maps.uncertainty.double().mean().item()
        assert f"{plain['uncertainty']:.9g}" == row["uncertainty"]
        assert (plain["in_higher_group"], row["in_higher_group"]) == (
            None,
            "",
        )  # six images of two photos do not form two groups
        assert (plain["share_of_reference_below"] is None) == (row["share_of_reference_below"] == "") == (not reference)
        assert (
            plain["share_of_reference_below"] is None
            or f"{plain['share_of_reference_below']:.6f}" == row["share_of_reference_below"]
        )


def test_images_have_a_probability_only_where_there_are_two_groups(tmp_path):
    def ranked_at(*values):
        return ranked([Score(Path("a.png"), ResultFiles.of(tmp_path, "a"), value) for value in values], [], seed=0)

    apart = ranked_at(*np.linspace(0.10, 0.11, 8), *np.linspace(0.20, 0.21, 8))
    assert [round(value, 6) for value in apart.in_higher_group] == [1.0] * 8 + [0.0] * 8
    assert ranked_at(*np.linspace(0.10, 0.11, 8), 0.2).in_higher_group == [None] * 9
    assert ranked_at(0.1, 0.2).in_higher_group == [None] * 2


def test_names_that_are_not_text_are_written_with_question_marks(tmp_path, encoder, image):
    files = ResultFiles.of(tmp_path, "odd")
    rx.Relax(masks=4)(encoder, image, seed=0).save(files.maps)
    write(Ranked([Score(Path("bad\udcff, and\nmore.png"), files, 0.1)], [1 / 3], [None], None), tmp_path, {})
    (plain,) = pq.read_table(tmp_path / "screen.parquet").to_pylist()
    assert (plain["in_higher_group"], rows(tmp_path)[0]["in_higher_group"]) == (1 / 3, "0.333333")
    assert plain["image"] == rows(tmp_path)[0]["image"] == "bad?, and\nmore.png"


@pytest.mark.slow
def test_an_image_that_fails_is_the_last_row_of_the_table_with_the_reason(folder, monkeypatch, capsys):
    for i in range(1, 6):
        (folder / f"crop{i}.png").unlink()
    (folder / "bad.png").write_bytes(b"nothing")
    status, output, out = screen(folder, monkeypatch, capsys)
    assert status == 1
    assert "bad.png" in output.err
    assert "too few images" in output.out
    crop, bad = rows(out)
    assert (crop["in_higher_group"], crop["failure"]) == ("", "")
    assert bad["failure"].startswith("not an image")
    assert bad | {"failure": ""} == dict.fromkeys(bad, "") | {"rank": "2", "image": str(folder / "bad.png")}
    table = pq.read_table(out / "screen.parquet").to_pylist()
    assert [row["in_higher_group"] for row in table] == [None, None]
    assert table[1] == dict.fromkeys(bad) | {"rank": 2, "image": bad["image"], "failure": bad["failure"]}
    assert json.loads((out / "screen.json").read_text())["failed"] == 1


@pytest.mark.slow
def test_json_has_a_line_for_each_image(folder, monkeypatch, capsys):
    for i in range(2, 6):
        (folder / f"crop{i}.png").unlink()
    (folder / "bad.png").write_bytes(b"nothing")
    known = folder.parent / "known.png"
    PIL.Image.fromarray(data.coffee()).save(known)
    status, output, out = screen(folder, monkeypatch, capsys, "--json", "--known", known, "--aggregate", "median")
    assert status == 1
    lines = [json.loads(line) for line in output.out.splitlines()]
    assert [line["image"] for line in lines] == [str(folder / f"{name}.png") for name in ("bad", "crop0", "crop1")] + [
        str(known)
    ]
    assert "not an image" in lines[0]["error"]
    assert [line["reference"] for line in lines[1:]] == [False, False, True]
    for line in lines[1:]:
        maps = rx.Explanation.load(Path(line["panel"]).with_suffix(".npz"))
        assert line["uncertainty"] == maps.uncertainty.double().quantile(0.5).item()
        assert line["share_decided"] == (maps.verdict() != 0).double().mean().item()
        assert set(line) == {"image", "reference", "uncertainty", "share_decided", "panel"}
    assert len(rows(out)) == 3


class Interrupted:
    """Explanations on disk, and outcomes that end with an interrupt after some of them."""

    def __init__(self, folder, encoder, image):
        self.folder = folder
        self.explanation = rx.Repeat(estimator="exact", base=rx.Relax(masks=4), repeats=2)(encoder, image, seed=0)

    def outcome(self, number):
        files = ResultFiles.of(self.folder / "images", str(number))
        self.explanation.save(files.maps)
        return ImageOutcome(Path(f"{number}.png"), files)

    def outcomes(self, *, before=lambda number: None):
        for number in range(3):
            before(number)
            yield self.outcome(number)
        yield ImageOutcome(Path("bad.png"), error=ImageError("bad.png: not an image"))
        before(4)
        raise KeyboardInterrupt

    def run(self, **options):
        with pytest.raises(KeyboardInterrupt):
            screen_images(
                self.outcomes(**options), [], self.folder, total=9, aggregate="mean", seed=0, about={"seed": 0}
            )


def test_an_interrupt_leaves_a_table_of_what_is_done_marked_as_partial(tmp_path, encoder, image):
    Interrupted(tmp_path, encoder, image).run()
    assert [row["image"] for row in rows(tmp_path)] == ["0.png", "1.png", "2.png", "bad.png"]
    assert [row["panel"] for row in rows(tmp_path)] == ["images/0.png", "images/1.png", "images/2.png", ""]
    assert [row["failure"] for row in rows(tmp_path)] == ["", "", "", "not an image"]
    assert len(pq.read_table(tmp_path / "screen.parquet")) == 4
    about = json.loads((tmp_path / "screen.json").read_text())
    assert (about["partial"], about["images"], about["failed"], about["seed"]) == (True, 3, 1, 0)
    assert "4 of 9" in about["statement"]


def test_the_table_is_updated_while_images_are_explained(tmp_path, encoder, image, monkeypatch):
    monkeypatch.setattr(screening, "SECONDS_BETWEEN_TABLES", 0.0)
    monkeypatch.setattr(screening, "WRITING_SHARE", 1e9)
    lengths = []

    def before(number):
        if number > 0:
            lengths.append(len(rows(tmp_path)))
            assert json.loads((tmp_path / "screen.json").read_text())["partial"]

    Interrupted(tmp_path, encoder, image).run(before=before)
    assert lengths == [1, 2, 4]


@pytest.mark.parametrize(
    "name", ["IMG_20240101_123456789_HDR_portrait.jpg", "a photo of the cat.png", "猫" * 60 + ".png"]
)
def test_the_contact_sheet_shows_whole_names_that_neither_overlap_nor_leave_the_sheet(name):
    picture = np.zeros((40, 60, 3), np.uint8)
    photo = Photo(name=f"folder/{name}", picture=picture, size=(40, 60), box=(0.0, 0.0, 60.0, 40.0), digest="0")
    images = [(photo, 0.125)] * 6
    figure = contact_sheet(images, images, [0.125] * 12, None)
    figure.draw_without_rendering()
    titles = [axes.title for axes in figure.axes[:-1]]
    assert {title.get_text().replace("\n", "").replace(" ", "") for title in titles} == {
        f"{name}0.125".replace(" ", "")
    }
    boxes = [title.get_window_extent() for title in titles]
    for row in (boxes[:6], boxes[6:]):
        assert all(box.x1 < next_box.x0 for box, next_box in pairwise(row))
    assert all(figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1 for box in boxes)
    assert boxes[6].y1 < figure.axes[0].get_window_extent().y0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--aggregate", "sum"], 2, "unknown aggregate 'sum'"),
        (["--known", "nowhere"], 1, "nowhere: no such file"),
    ],
)
def test_wrong_requests_are_refused(folder, monkeypatch, capsys, options, status, message):
    actual, output, _ = screen(folder, monkeypatch, capsys, *options)
    assert actual == status
    assert message in output.err
