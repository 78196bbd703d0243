"""Tests of `evaluate`: tables are made from rows, and an interrupted run goes on."""

import csv
import json
import re

import PIL.Image
import pytest
from command import run_here
from skimage import data

from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_store import RowStore

FEW = ["--masks", 16, "--repeats", 2, "--encoder", "torchvision:squeezenet1_1=random", "--device", "cpu"]
FEW += ["--protocol", "encoder", "--size", 64]


def crops(folder, photo, count):
    folder.mkdir()
    for i in range(count):
        PIL.Image.fromarray(photo[10 * i : 10 * i + 150, 10 * i : 10 * i + 180]).save(folder / f"{i}.png")
    return folder


@pytest.fixture
def cats(tmp_path):
    return crops(tmp_path / "cats", data.chelsea(), 5)


@pytest.fixture
def rockets(tmp_path):
    return crops(tmp_path / "rockets", data.rocket(), 5)


@pytest.fixture
def evaluate(monkeypatch, capsys, tmp_path):
    def command(*options):
        return run_here(monkeypatch, capsys, "evaluate", "--out", tmp_path / "out", *FEW, *options)

    return command


def numbers(path):
    with path.open(newline="") as file:
        return {(row["method"], row["column"]): row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_tables_figures_and_rows_are_written_and_a_second_run_makes_none(cats, rockets, evaluate, tmp_path):
    metrics = "complexity,emprt,ood,codes"
    arguments = ["--dataset", cats, "--against", rockets, "--metrics", metrics, "--baseline", "relax"]
    status, output = evaluate(*arguments)
    assert status == 0, output.err
    assert "40 of 40 rows to make" in output.err  # of cats, cats randomised and rockets by two methods, and codes
    out = tmp_path / "out"
    names = {path.name for path in out.iterdir()}
    assert {"evaluation.md", "evaluation.tex", "evaluation.csv", "codes.csv", "run.json", "rows"} <= names
    assert {
        f"{kind}-evaluation-squeezenet1_1-rockets.{end}" for kind in ("histograms", "roc") for end in ("png", "pdf")
    } <= names
    assert "2 repeats, 16 masks, exact; 10 passes of other methods" in (out / "evaluation.md").read_text()
    table = numbers(out / "evaluation.csv")
    rows = [row for row in RowStore(out / "rows").rows().values() if "cats" in row.dataset and row.method == "Relax"]
    trained = [row.scores["complexity.importance"] for row in rows if "randomised" not in row.setting]
    assert float(table["relax", "complexity (I)"]["mean"]) == pytest.approx(sum(trained) / 5, abs=1e-12)
    assert table["repeat", "complexity (I)"]["p"]
    assert table["relax", "complexity (I)"]["p"] == ""
    assert ("repeat, binary votes", "eMPRT (U)") in table
    assert json.loads((out / "run.json").read_text())["images"] == {str(cats): 5, str(rockets): 5}
    again = evaluate(*arguments)
    assert again[0] == 0
    assert "0 of 40 rows to make" in again[1].err
    assert numbers(out / "evaluation.csv") == table


def test_more_images_or_metrics_make_only_what_is_missing(cats, evaluate, tmp_path):
    assert evaluate("--dataset", cats, "--images", 2, "--methods", "relax")[0] == 0
    _, output = evaluate("--dataset", cats, "--images", 4, "--methods", "relax", "--metrics", "sparseness")
    assert "2 of 4 rows to make" in output.err
    assert numbers(tmp_path / "out/evaluation.csv")["relax", "sparseness (I)"]["images"] == "4"


def test_a_bad_image_is_one_failure_and_is_tried_again(cats, evaluate, tmp_path):
    good = (cats / "3.png").read_bytes()
    (cats / "3.png").write_bytes(good[:200])
    status, output = evaluate("--dataset", cats, "--methods", "relax")
    assert status == 1
    assert re.search(r"cats, 3\.png: the image is damaged or cut short", output.err)
    assert "1 row failed" in output.err
    row = numbers(tmp_path / "out/evaluation.csv")["relax", "complexity (I)"]
    assert (row["images"], row["undefined"]) == ("4", "1")
    (cats / "3.png").write_bytes(good)
    status, output = evaluate("--dataset", cats, "--methods", "relax")
    assert (status, "1 of 5 rows to make" in output.err) == (0, True)


@pytest.mark.slow
def test_the_page_lists_images_that_failed_and_no_folder_of_the_machine(cats, evaluate, tmp_path):
    (cats / "bad.png").write_text("not a picture")
    assert evaluate("--dataset", cats)[0] == 1
    text = (tmp_path / "out" / "index.html").read_text()
    listed = text[text.index('<details id="failures">') :]
    assert '<th scope="row">bad.png</th><td>cats</td>' in listed
    assert str(tmp_path) not in text


@pytest.mark.slow
def test_maps_are_kept_if_wanted(cats, evaluate, tmp_path):
    arguments = ("--dataset", cats, "--methods", "repeat")
    assert evaluate(*arguments, "--images", 2)[0] == 0
    status, output = evaluate(*arguments, "--images", 2, "--maps")
    assert (status, "2 of 2 rows to make" in output.err) == (0, True)
    kept = MapStore(tmp_path / "out/maps.zarr")
    rows = RowStore(tmp_path / "out/rows").rows()
    for key, row in rows.items():
        uncertainty = kept.read(key).maps["uncertainty"]
        assert float(uncertainty.astype("float64").mean()) == pytest.approx(row.scores["mean.uncertainty"], abs=1e-9)
    (cats / "more.png").write_bytes((cats / "0.png").read_bytes())
    status, output = evaluate(*arguments, "--maps")
    assert (status, "4 of 6 rows to make" in output.err) == (0, True)
    for key in RowStore(tmp_path / "out/rows").rows():
        kept.read(key)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--metrics", "beauty"], "unknown metric 'beauty'; choose one of: complexity"),
        (["--metrics", "ood"], "ood: compares datasets"),
        (["--baseline", "lime"], "unknown baseline 'lime'"),
        (["--images", 9], "has 5 images, not 9"),
        (["--metrics", "pointing_game"], "has no segmentations"),
        (["--metrics", "poison", "--against", "."], "poison needs the dataset cifar10"),
        (["--metrics", "poison", "--against", "cifar10+tap"], "poison needs the dataset cifar10"),
        (["--aggregate", "most", "--metrics", "ood", "--against", "."], "unknown aggregate 'most'"),
        (["--methods", "magic"], "unknown method 'magic'"),
        (["--protocol", "paper"], "--protocol paper shows encoders 224×224 pixels; --size is for"),
        (["--encoder", "torchvision:squeezenet1_1=random"], "two encoders are called squeezenet1_1 in the table"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(cats, evaluate, options, words):
    status, output = evaluate("--dataset", cats, *options)
    assert status == 2
    assert words in output.err
    assert len(output.err.splitlines()) == 1


@pytest.mark.slow
def test_every_further_metric_has_its_numbers(cats, evaluate, tmp_path):
    metrics = "deletion,insertion,local_lipschitz,sparseness"
    arguments = ["--dataset", cats, "--images", 2, "--methods", "relax", "--metrics", metrics]
    arguments += ["--draws", 2, "--runs", 2]
    assert evaluate(*arguments)[0] == 0
    table = numbers(tmp_path / "out/evaluation.csv")
    for title in ("deletion (I)", "insertion (I)", "local lipschitz (I)"):
        assert float(table["relax", title]["mean"]) > 0
    assert table["relax", "deletion (I), 2 runs"]["images"] == "2"


@pytest.mark.slow
def test_metrics_of_the_encoder_run_by_name(cats, evaluate, tmp_path):
    options = ["--dataset", cats, "--images", 1, "--metrics", "mprt,max_sensitivity,calibration", "--draws", 2]
    status, output = evaluate(*options)
    assert status == 0, output.err
    table = numbers(tmp_path / "out/evaluation.csv")
    for method in ("repeat", "relax"):
        for title in ("mprt (I)", "mprt (U)", "max sensitivity (I)"):
            assert table[method, title]["images"] == "1", (method, title)
        assert -1 <= float(table[method, "mprt (I)"]["mean"]) <= 1
        assert float(table[method, "max sensitivity (I)"]["mean"]) > 0
    for line in ("repeat", "repeat, binary votes"):
        assert 0 < float(table[line, "calibration (votes)"]["mean"]) < 1
    assert table["relax", "calibration (votes)"]["mean"] == "", "RELAX casts no votes"
    assert {row.measure for row in RowStore(tmp_path / "out/rows").rows().values()} == {"EncoderScores"}
    assert "0 of 5 rows to make" in evaluate(*options)[1].err


def test_a_metric_of_votes_is_refused_where_no_method_votes(cats, evaluate):
    status, output = evaluate("--dataset", cats, "--metrics", "calibration", "--methods", "relax")
    assert (status, "votes" in output.err, len(output.err.splitlines())) == (2, True, 1)


def test_a_metric_that_randomises_weights_is_refused_for_onnx_files(cats, evaluate):
    status, output = evaluate("--dataset", cats, "--metrics", "mprt", "--encoder", "onnx:a.onnx")
    assert (status, "mprt" in output.err, "ONNX" in output.err) == (2, True, True)
