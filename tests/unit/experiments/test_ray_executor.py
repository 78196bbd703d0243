"""A cluster of real nodes on this machine makes the rows that this process would, and survives the loss of one."""

import os
import resource
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from crews import PICTURES, Deadly, Faulty, Waiting, children, ended, go_on_for_ever, listening, network
from stores import bits, quickly

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments import making_rows as run
from repeat_xai.experiments.executors import ray_executor as crews_of_ray
from repeat_xai.experiments.executors.local import Local
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.making_rows import Executor, Work
from repeat_xai.experiments.measures import Maps
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_store import Store
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.relax import Relax

pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
WAIT = 0.25
SMALL = {"object_store_memory": 80 * 2**20}
ALONE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on loopback only
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}


@pytest.fixture(scope="module")
def cluster():
    """A head that works on nothing, and two nodes with room for a worker each."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ALONE.items():
            patch.setenv(name, value)
        from ray._private import ray_constants
        from ray.cluster_utils import Cluster

        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
        patch.setattr(crews_of_ray, "LONG", 600.0)  # a worker starts slowly on a busy machine
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **SMALL})
        for _ in range(2):
            made.add_node(num_cpus=1, **SMALL)
        yield made
        made.shutdown()


@pytest.fixture(scope="module")
def one(cluster, worker):
    made = RayExecutor(worker=worker, address=cluster.address, workers=1, batch=4)
    yield made
    made.close()


@pytest.fixture(scope="module")
def two(cluster, worker, one):
    """As many workers as there is room for, once the one is gone."""
    one.close()
    made = RayExecutor(worker=worker, address=cluster.address, batch=4)
    yield made
    made.close()


def by(measure, work, times=1):
    """The pictures that can be read, by another measure."""
    return [Work(replace(work[0].setting, measure=measure, seed=seed), list(range(PICTURES))) for seed in range(times)]


def rate(rows):
    """Rows a second, from when all workers are at work until one of them has nothing left to begin."""
    began = {}
    for row in rows:
        began.setdefault(row.scores["process"], []).append(row.scores["began"])
    first, last = max(map(min, began.values())), min(map(max, began.values()))
    return sum(first < time <= last for times in began.values() for time in times) / (last - first)


@pytest.fixture(scope="module")
def alone(one, work):
    """Rows a second of one worker, which waits for each image."""
    rows = list(one.rows(by(Waiting(seconds=WAIT), work)))
    assert len({row.scores["process"] for row in rows}) == 1
    return rate(rows)


def test_two_nodes_are_nearly_twice_as_fast(alone, two, work):
    assert alone < 1 / WAIT
    rows = list(two.rows(by(Waiting(seconds=WAIT), work, times=2)))
    assert len({row.scores["process"] for row in rows}) == 2
    print(f"two nodes: {rate(rows) / alone:.2f} times one")
    assert rate(rows) > 1.7 * alone


def test_the_rows_are_those_of_this_process(two, work, worker):
    assert isinstance(two, Executor)
    expected = {row.key: bits(row, but=("seconds",)) for row in Local(worker=worker).rows(work)}
    found = list(two.rows(work))
    assert len(found) == len(expected) == 3 * (PICTURES + 1)
    assert {row.key: bits(row, but=("seconds",)) for row in found} == expected
    assert list(two.rows([])) == []


@pytest.mark.filterwarnings("ignore:a worker died")
def test_an_image_that_kills_workers_is_given_up_and_the_others_are_done(two, work, tmp_path):
    rows = list(two.rows(by(Deadly(picture="0005", times=9, deaths=str(tmp_path)), work)))
    assert len(list(tmp_path.iterdir())) == 1 + two.retries
    assert sorted(row.image[:4] for row in rows) == [f"{n:04}" for n in range(PICTURES)]
    failures = {row.image[:4]: row.failure for row in rows if row.failure is not None}
    assert failures == {"0005": "its worker died 3 times (unexpectedly)"}


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_memory_here_does_not_grow_with_the_work(two, place, tmp_path, monkeypatch, count):
    """So many images, by a measure that takes no time; the first tenth of them is the warming up."""
    monkeypatch.setattr(run, "EVERY", 0.2)
    (place / "cifar10").mkdir(exist_ok=True)
    images = np.random.default_rng(0).integers(0, 256, (10_000, 32, 32, 3), np.uint8)
    np.savez(place / "cifar10/clean.npz", images=images, labels=np.zeros(len(images), int))
    setting = Setting(dataset="cifar10", network=network(place), method=Relax(), measure=Waiting(), protocol="encoder")
    sizes = []
    for number, _ in enumerate(run.run([Work(setting, range(count))], Store(tmp_path / "rows"), two), start=1):
        if number % (count // 10) == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            sizes.append(pages * resource.getpagesize() / 2**20)
    assert number == count
    print(f"memory of the driver, in MB, every {count // 10} rows: {[round(size) for size in sizes]}")
    assert max(sizes) - sizes[0] < 50


def test_a_node_killed_in_the_middle_loses_nothing(two, work, cluster):
    rows, times = [], 6
    with pytest.warns(UserWarning, match="a worker died"):  # noqa: PT031
        for row in two.rows(by(Waiting(seconds=WAIT), work, times=times)):
            rows.append(row)
            both = len({row.scores["process"] for row in rows}) == 2
            if both and len(cluster.worker_nodes) == 2:
                killed = len(rows)
                cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    assert killed < times * PICTURES / 2
    assert sorted(row.image[:4] for row in rows) == sorted(times * [f"{n:04}" for n in range(PICTURES)])
    assert {row.failure for row in rows} == {None}
    assert len({row.key for row in rows}) == len(rows)


def test_what_stops_a_worker_is_raised_here(two, work):
    with pytest.warns(UserWarning, match="^too coarse$"):
        assert len(list(two.rows(by(Faulty(way="warns"), work)))) == PICTURES
    with pytest.raises(ConfigurationError, match=r"^asked for what makes no sense$"):
        list(two.rows(by(Faulty(way="refuses"), work)))
    assert two._crew == []


def test_maps_that_are_not_seen_here_are_refused(cluster, work, worker, tmp_path, monkeypatch):
    kept = MapStore(tmp_path / "here")
    keeping = RayExecutor(worker=Worker(device="cpu", root=worker.root, maps=kept), address=cluster.address, workers=1)
    made = [row.key for row in keeping.rows(work[:1]) if row.failure is None]
    assert len(made) == PICTURES
    for key in made:
        kept.read(key)
    keeping.close()
    monkeypatch.setattr(MapStore, "absolute", lambda _: MapStore(tmp_path / "there"))  # as on a machine of its own
    with pytest.raises(ConfigurationError, match=r"here: maps that a worker has written are not seen here; it must be"):
        list(keeping.rows(by(Maps(), work, times=2)[1:]))


def test_a_cluster_without_room_is_waited_for(cluster, work, worker, monkeypatch):
    monkeypatch.setattr(crews_of_ray, "LONG", 0.5)
    crowded = RayExecutor(worker=worker, address=cluster.address, workers=1, cpus=64)
    with pytest.raises(UserWarning, match="the cluster has no room for any worker yet; waiting"):
        next(crowded.rows(by(Waiting(), work)))  # warnings are errors here
    assert crowded._crew == []


def test_a_machine_without_the_package_is_said_in_a_line(cluster, work, worker, tmp_path, monkeypatch):
    (tmp_path / "repeat_xai.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    without = cluster.add_node(num_cpus=2, **SMALL)
    with pytest.raises(
        ConfigurationError, match=r"a worker cannot start \(ImportError: not here\); every machine"
    ) as no:
        list(RayExecutor(worker=worker, address=cluster.address, workers=1, cpus=2).rows(work))
    assert len(str(no.value).splitlines()) == 1
    cluster.remove_node(without)


def test_without_ray_it_is_said_what_to_install(work, worker, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"needs Ray; pip install 'repeat-xai\[ray\]'"):
        next(RayExecutor(worker=worker).rows(work))


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense", "host:port"])
def test_a_cluster_that_is_not_there_is_said_in_a_line(work, worker, address):
    with pytest.raises(ConfigurationError, match=f"no Ray cluster at {address} ") as refused:
        next(RayExecutor(worker=worker, address=address).rows(work))
    assert len(str(refused.value).splitlines()) == 1


def test_a_cluster_of_our_own_is_out_of_reach_and_ends_with_us(work, tmp_path):
    """It listens on loopback alone, and Ctrl-C leaves nothing of it."""
    receiving, sending = quickly.Pipe(duplex=False)
    setting = replace(work[0].setting, measure=Waiting(seconds=0.2))
    maker = quickly.Process(target=go_on_for_ever, args=("ray", setting, sending, tmp_path / "said"))
    maker.start()
    sending.close()
    workers = receiving.recv()
    started = children(maker.pid)
    assert workers < started
    assert listening(started | {maker.pid}) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    os.killpg(maker.pid, signal.SIGINT)
    maker.join(30)
    assert maker.exitcode == 1
    assert ended(started)
    said = (tmp_path / "said").read_text()
    assert said.endswith("KeyboardInterrupt\n")
