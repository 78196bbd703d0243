"""Tests of the executor `ray` on a cluster of real nodes on this machine, one of which is lost."""

import os
import resource
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from process_tree import children, ended, listening
from small_work import PICTURES, Deadly, Faulty, Waiting, network, work_for_ever
from stores import bits, forkserver

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments import making_rows
from repeat_xai.experiments.executors import ray_executor
from repeat_xai.experiments.executors.executor import Executor, Local, Work
from repeat_xai.experiments.executors.ray_cluster import loopback_only
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.map_scores import MapScores
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.relax import Relax

pytest.importorskip("ray")
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]
WAIT = 0.25
"""Seconds that a worker waits at each picture."""
SMALL = {"object_store_memory": 80 * 2**20}
ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on loopback only
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")]))),
}


@pytest.fixture(scope="module")
def cluster():
    """A cluster of a head without workers and two nodes with room for one worker each."""
    with pytest.MonkeyPatch.context() as patch, loopback_only():
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        patch.setattr(ray_executor, "WARN_WITHOUT_ACTORS", 600.0)  # a worker starts slowly on a busy machine
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **SMALL})
        for _ in range(2):
            cluster.add_node(num_cpus=1, **SMALL)
        yield cluster
        cluster.shutdown()


@pytest.fixture(scope="module")
def one_actor(cluster, worker):
    executor = RayExecutor(worker=worker, address=cluster.address, workers=1, batch_size=4)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def two_actors(cluster, worker, one_actor):
    """As many actors as there is room for, once the executor with one has been closed."""
    one_actor.close()
    executor = RayExecutor(worker=worker, address=cluster.address, batch_size=4)
    yield executor
    executor.close()


def with_measure(measure, work, times=1):
    """Return the work for the readable pictures, with another measure and with `times` seeds."""
    return [Work(replace(work[0].setting, measure=measure, seed=seed), list(range(PICTURES))) for seed in range(times)]


def rate(rows):
    """Return the rows per second from when all workers are at work until one of them has begun its last row."""
    began = {}
    for row in rows:
        began.setdefault(row.scores["process"], []).append(row.scores["began"])
    first, last = max(map(min, began.values())), min(map(max, began.values()))
    return sum(first < time <= last for times in began.values() for time in times) / (last - first)


@pytest.fixture(scope="module")
def rate_of_one(one_actor, work):
    """The rows per second of one worker."""
    rows = list(one_actor.rows(with_measure(Waiting(seconds=WAIT), work)))
    assert len({row.scores["process"] for row in rows}) == 1
    return rate(rows)


def test_two_nodes_are_nearly_twice_as_fast(rate_of_one, two_actors, work):
    assert rate_of_one < 1 / WAIT
    rows = list(two_actors.rows(with_measure(Waiting(seconds=WAIT), work, times=4)))
    assert len({row.scores["process"] for row in rows}) == 2
    print(f"two nodes: {rate(rows) / rate_of_one:.2f} times one")
    assert rate(rows) > 1.7 * rate_of_one


def test_actors_make_the_same_rows_as_this_process(two_actors, work, worker):
    assert isinstance(two_actors, Executor)
    expected = {row.key: bits(row, but=("seconds",)) for row in Local(worker=worker).rows(work)}
    rows = list(two_actors.rows(work))
    assert len(rows) == len(expected) == 3 * (PICTURES + 1)
    assert {row.key: bits(row, but=("seconds",)) for row in rows} == expected
    assert list(two_actors.rows([])) == []


@pytest.mark.filterwarnings("ignore:a worker died")
def test_an_image_that_kills_workers_is_given_up_and_the_others_get_rows(two_actors, work, tmp_path):
    rows = list(two_actors.rows(with_measure(Deadly(picture="0005", times=9, deaths=str(tmp_path)), work)))
    assert len(list(tmp_path.iterdir())) == 1 + two_actors.retries
    assert sorted(row.image[:4] for row in rows) == [f"{n:04}" for n in range(PICTURES)]
    failures = {row.image[:4]: row.failure for row in rows if row.failure is not None}
    assert failures == {"0005": "its worker died 3 times (unexpectedly)"}


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_memory_of_this_process_does_not_grow_with_the_work(two_actors, place, tmp_path, monkeypatch, count):
    """The measure takes no time; the first tenth of the images is a warm-up."""
    monkeypatch.setattr(making_rows, "SECONDS_PER_FILE", 0.2)
    (place / "cifar10").mkdir(exist_ok=True)
    images = np.random.default_rng(0).integers(0, 256, (10_000, 32, 32, 3), np.uint8)
    np.savez(place / "cifar10/clean.npz", images=images, labels=np.zeros(len(images), int))
    setting = Setting(
        dataset="cifar10", encoder_spec=network(place), method=Relax(), measure=Waiting(), protocol="encoder"
    )
    sizes = []
    rows = making_rows.make_rows([Work(setting, range(count))], RowStore(tmp_path / "rows"), two_actors)
    for number, _ in enumerate(rows, start=1):
        if number % (count // 10) == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            sizes.append(pages * resource.getpagesize() / 2**20)
    assert number == count
    print(f"memory of the driver, in MB, every {count // 10} rows: {[round(size) for size in sizes]}")
    assert max(sizes) - sizes[0] < 50


def test_killing_a_node_in_the_middle_loses_no_row(two_actors, work, cluster):
    rows, times = [], 6
    with pytest.warns(UserWarning, match="a worker died"):  # noqa: PT031
        for row in two_actors.rows(with_measure(Waiting(seconds=WAIT), work, times=times)):
            rows.append(row)
            both = len({row.scores["process"] for row in rows}) == 2
            if both and len(cluster.worker_nodes) == 2:
                killed = len(rows)
                cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    assert killed < times * PICTURES / 2
    assert sorted(row.image[:4] for row in rows) == sorted(times * [f"{n:04}" for n in range(PICTURES)])
    assert {row.failure for row in rows} == {None}
    assert len({row.key for row in rows}) == len(rows)


def test_warnings_and_errors_of_a_worker_are_raised_in_this_process(two_actors, work):
    with pytest.warns(UserWarning, match="^too coarse$"):
        assert len(list(two_actors.rows(with_measure(Faulty(way="warns"), work)))) == PICTURES
    with pytest.raises(ConfigurationError, match="makes no sense"):
        list(two_actors.rows(with_measure(Faulty(way="refuses"), work)))
    assert two_actors._actors == []


def test_maps_in_a_folder_that_is_not_shared_are_refused(cluster, work, worker, tmp_path, monkeypatch):
    kept = MapStore(tmp_path / "here")
    keeping = RayExecutor(worker=Worker(device="cpu", root=worker.root, maps=kept), address=cluster.address, workers=1)
    made = [row.key for row in keeping.rows(work[:1]) if row.failure is None]
    assert len(made) == PICTURES
    for key in made:
        kept.read(key)
    keeping.close()
    monkeypatch.setattr(
        MapStore, "absolute", lambda _: MapStore(tmp_path / "there")
    )  # as on a machine with its own disk
    with pytest.raises(ConfigurationError, match="one folder for all machines"):
        list(keeping.rows(with_measure(MapScores(), work, times=2)[1:]))


def test_waiting_for_room_on_a_cluster_issues_a_warning(cluster, work, worker, monkeypatch):
    monkeypatch.setattr(ray_executor, "WARN_WITHOUT_ACTORS", 0.5)
    crowded = RayExecutor(worker=worker, address=cluster.address, workers=1, cpus=64)
    with pytest.raises(UserWarning, match="no room for any worker"):
        next(crowded.rows(with_measure(Waiting(), work)))  # warnings are errors here
    assert crowded._actors == []


def test_a_machine_without_the_package_is_named_in_an_error_of_one_line(cluster, work, worker, tmp_path, monkeypatch):
    (tmp_path / "repeat_xai.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    without = cluster.add_node(num_cpus=2, **SMALL)
    with pytest.raises(ConfigurationError, match=r"cannot start \(ImportError: not here\)") as refused:
        list(RayExecutor(worker=worker, address=cluster.address, workers=1, cpus=2).rows(work))
    assert len(str(refused.value).splitlines()) == 1
    cluster.remove_node(without)


def test_without_ray_the_error_says_what_to_install(work, worker, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'repeat-xai\[ray\]'"):
        next(RayExecutor(worker=worker).rows(work))


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense", "host:port"])
def test_an_address_without_a_cluster_is_refused_in_one_line(work, worker, address):
    with pytest.raises(ConfigurationError, match=f"no Ray cluster at {address} ") as refused:
        next(RayExecutor(worker=worker, address=address).rows(work))
    assert len(str(refused.value).splitlines()) == 1


def test_a_cluster_started_here_is_out_of_reach_of_others_and_ends_with_this_process(work, tmp_path):
    """It listens on the loopback address alone, and Ctrl-C ends all its processes."""
    receiving, sending = forkserver.Pipe(duplex=False)
    setting = replace(work[0].setting, measure=Waiting(seconds=0.2))
    parent = forkserver.Process(target=work_for_ever, args=("ray", setting, sending, tmp_path / "stderr"))
    parent.start()
    sending.close()
    workers = receiving.recv()
    started = children(parent.pid)
    assert workers < started
    assert listening(started | {parent.pid}) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    os.killpg(parent.pid, signal.SIGINT)
    parent.join(30)
    assert parent.exitcode == 1
    assert ended(started)
    assert (tmp_path / "stderr").read_text().endswith("KeyboardInterrupt\n")
