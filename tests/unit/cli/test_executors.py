"""Tests of the options and the registry of executors."""

import csv

import pytest
import torch
from command import run_here
from small_work import network, pictures

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.executors.executor import Executor, Local, Placement
from repeat_xai.experiments.executors.executor_names import EXECUTORS, ExecutorEntry, make_executor
from repeat_xai.experiments.executors.processes import Processes, spread_over_devices
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.worker import Worker


@pytest.fixture
def worker(tmp_path):
    return Worker(device="cpu", root=tmp_path)


def test_executors_get_the_placement_that_is_asked_for(worker):
    assert isinstance(make_executor("local", worker, Placement("auto")), Local)
    processes = make_executor("processes", worker, Placement("cpu", workers=3))
    assert (type(processes), processes.devices) == (Processes, ("cpu",) * 3)
    ray = make_executor("ray", worker, Placement("cpu", workers=3, ray_address="10.0.0.1:6379"))
    assert (type(ray), ray.address, ray.workers, ray.gpus) == (RayExecutor, "10.0.0.1:6379", 3, 0)
    assert make_executor("ray", worker, Placement("auto")).gpus is None


@pytest.mark.parametrize("name", EXECUTORS)
def test_every_registered_executor_follows_the_protocol(worker, name):
    executor = make_executor(name, worker, Placement("cpu"))
    assert isinstance(executor, Executor)
    assert executor.concurrency >= 1
    executor.close()


def test_list_executors_names_each_with_its_description(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "list", "executors")
    assert status == 0
    lines = [line.split(maxsplit=1) for line in output.out.splitlines()]
    assert lines == [[name, entry.description] for name, entry in EXECUTORS.items()]


def test_help_describes_every_executor(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "evaluate", "--help")
    assert status == 0
    words = " ".join(output.out.replace("│", " ").split())
    assert all(f"{name}, {entry.description}" in words for name, entry in EXECUTORS.items())


def test_an_executor_added_to_the_registry_can_be_used_by_name(monkeypatch, capsys, tmp_path):
    chosen = []

    def make(worker, placement):
        chosen.append(placement)
        return Local.placed(worker, placement)

    monkeypatch.setitem(EXECUTORS, "added", ExecutorEntry("in this process, for a test", make, in_this_process=True))
    status, output = run_here(monkeypatch, capsys, *small_evaluation(tmp_path), "--executor", "added")
    assert status == 0, output.err
    assert chosen == [Placement("cpu")]


def test_an_unknown_executor_is_wrong_usage(monkeypatch, capsys, tmp_path):
    status, output = run_here(monkeypatch, capsys, *small_evaluation(tmp_path), "--executor", "process")
    assert status == 2
    assert "unknown executor 'process'" in output.err
    assert len(output.err.splitlines()) == 1


def small_evaluation(tmp_path):
    """Return a command that evaluates RELAX on two pictures, on a CPU."""
    dataset = pictures(tmp_path / "some", 2)
    small = ["--encoder", network(tmp_path).name, "--protocol", "encoder", "--methods", "relax", "--masks", 16]
    return ["evaluate", "--dataset", dataset, *small, "--device", "cpu", "--out", tmp_path / "out"]


def test_workers_are_spread_over_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert spread_over_devices("auto", None) == ("cuda:0", "cuda:1")
    assert spread_over_devices("cuda", 3) == ("cuda:0", "cuda:1", "cuda:0")
    assert spread_over_devices("cuda:1", 2) == ("cuda:1", "cuda:1")
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert spread_over_devices("cpu", None) == ("cpu",) * 4
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert spread_over_devices("auto", 1) == ("cpu",)
    assert spread_over_devices("cuda", None) == ("cuda",)


def test_options_of_other_executors_are_refused(worker):
    with pytest.raises(ConfigurationError, match=r"workers .* for processes or ray"):
        make_executor("local", worker, Placement("cpu", workers=2))
    with pytest.raises(ConfigurationError, match=r"ray address .* for ray"):
        make_executor("processes", worker, Placement("cpu", ray_address="auto"))
    with pytest.raises(ConfigurationError, match="client"):
        make_executor("ray", worker, Placement("cpu", ray_address="ray://host:10001"))


@pytest.mark.slow
def test_processes_make_the_same_table_as_this_process(monkeypatch, capsys, tmp_path):
    small = ["--dataset", pictures(tmp_path / "some", 5), "--encoder", network(tmp_path).name, "--protocol", "encoder"]
    small += ["--methods", "relax", "--masks", 16, "--device", "cpu"]
    tables = {}
    for name in ("local", "processes"):
        status, output = run_here(
            monkeypatch, capsys, "evaluate", *small, "--out", tmp_path / name, "--executor", name,
            *(["--workers", 2] if name == "processes" else []),
        )  # fmt: skip
        assert status == 0, output.err
        with (tmp_path / name / "evaluation.csv").open(newline="") as file:
            tables[name] = list(csv.DictReader(file))
    assert tables["processes"] == tables["local"]


@pytest.mark.slow
def test_a_missing_device_is_refused_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    small = ["--dataset", pictures(tmp_path / "some", 2), "--encoder", "torchvision:squeezenet1_1=random"]
    small += ["--methods", "relax", "--masks", 16, "--device", "cuda:7", "--executor", "processes"]
    status, output = run_here(monkeypatch, capsys, "evaluate", *small, "--out", tmp_path / "out")
    assert status == 2
    assert "there is no device 'cuda:7' on this machine" in output.err
