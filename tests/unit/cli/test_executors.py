"""Where rows are made, by command."""

import csv

import pytest
import torch
from command import run_here
from crews import network, pictures

from repeat_xai.cli.executor_options import devices, executor_of
from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.executors.local import Local
from repeat_xai.experiments.executors.processes import Processes
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.worker import Worker


@pytest.fixture
def worker(tmp_path):
    return Worker(device="cpu", root=tmp_path)


def test_every_place_has_its_executor(worker):
    assert isinstance(executor_of("local", worker, device="auto"), Local)
    processes = executor_of("processes", worker, device="cpu", workers=3)
    assert (type(processes), processes.devices) == (Processes, ("cpu",) * 3)
    ray = executor_of("ray", worker, device="cpu", workers=3, address="10.0.0.1:6379")
    assert (type(ray), ray.address, ray.workers, ray.gpus) == (RayExecutor, "10.0.0.1:6379", 3, 0)
    assert executor_of("ray", worker, device="auto").gpus is None


def test_workers_are_spread_over_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices("auto", None) == ("cuda:0", "cuda:1")
    assert devices("cuda", 3) == ("cuda:0", "cuda:1", "cuda:0")
    assert devices("cuda:1", 2) == ("cuda:1", "cuda:1")
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert devices("cpu", None) == ("cpu",) * 4
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert devices("auto", 1) == ("cpu",)
    assert devices("cuda", None) == ("cuda",)


def test_options_of_other_places_are_refused(worker):
    with pytest.raises(ConfigurationError, match="--workers is for --executor processes or ray"):
        executor_of("local", worker, device="cpu", workers=2)
    with pytest.raises(ConfigurationError, match="--ray-address is for --executor ray"):
        executor_of("processes", worker, device="cpu", address="auto")
    with pytest.raises(ConfigurationError, match="Ray's client is not supported"):
        executor_of("ray", worker, device="cpu", address="ray://host:10001")


def test_processes_fill_the_same_table(monkeypatch, capsys, tmp_path):
    small = ["--dataset", pictures(tmp_path / "some", 5), "--encoder", network(tmp_path).name, "--protocol", "encoder"]
    small += ["--methods", "relax", "--masks", 16, "--device", "cpu"]
    found = {}
    for place in ("local", "processes"):
        status, said = run_here(
            monkeypatch, capsys, "evaluate", *small, "--out", tmp_path / place, "--executor", place,
            *(["--workers", 2] if place == "processes" else []),
        )  # fmt: skip
        assert status == 0, said.err
        with (tmp_path / place / "evaluation.csv").open(newline="") as file:
            found[place] = list(csv.DictReader(file))
    assert found["processes"] == found["local"]


def test_a_device_that_is_not_there_is_said_in_a_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    small = ["--dataset", pictures(tmp_path / "some", 2), "--encoder", "torchvision:squeezenet1_1=random"]
    small += ["--methods", "relax", "--masks", 16, "--device", "cuda:7", "--executor", "processes"]
    status, said = run_here(monkeypatch, capsys, "evaluate", *small, "--out", tmp_path / "out")
    assert status == 2
    assert "there is no device 'cuda:7' on this machine" in said.err
