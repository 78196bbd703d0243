"""Processes make the rows that this one would, whichever of them die."""

import os
import signal
from dataclasses import replace

import pytest
from crews import PICTURES, Deadly, Faulty, Waiting, alive, ended, go_on_for_ever, network, pictures
from stores import bits, quickly

from repeat_xai.errors import ConfigurationError, RepeatError
from repeat_xai.experiments.executors import work_queue as batches
from repeat_xai.experiments.executors.local import Local
from repeat_xai.experiments.executors.processes import Processes
from repeat_xai.experiments.executors.work_queue import Made, Queue
from repeat_xai.experiments.making_rows import Executor, Work
from repeat_xai.experiments.settings import Setting
from repeat_xai.methods.relax import Relax


@pytest.fixture(scope="module")
def crew(worker):
    """Two processes for all tests: those that die are replaced."""
    made = Processes(worker=worker, devices=("cpu", "cpu"), batch=4)
    yield made
    made.close()


def by(measure, work):
    """The pictures that can be read, by another measure."""
    return [Work(replace(work[0].setting, measure=measure), list(range(PICTURES)))]


def test_the_rows_are_those_of_this_process(work, worker, crew):
    assert isinstance(crew, Executor)
    assert isinstance(Local(worker=worker), Executor)
    expected = {row.key: bits(row, but=("seconds",)) for row in Local(worker=worker).rows(work)}
    assert len(expected) == 3 * (PICTURES + 1)
    found = list(crew.rows(work))
    assert len(found) == len(expected)
    assert {row.key: bits(row, but=("seconds",)) for row in found} == expected
    assert sum(row.failure is not None for row in found) == 3
    processes = {member.process.pid for member in crew._crew.values()}
    assert {row.key: bits(row, but=("seconds",)) for row in crew.rows(work)} == expected
    assert {member.process.pid for member in crew._crew.values()} == processes
    assert list(crew.rows([])) == []


def test_a_worker_killed_in_the_middle_loses_nothing(work, crew):
    waiting = by(Waiting(seconds=0.1), work)
    rows, killed = [], None
    with pytest.warns(UserWarning, match=r"a worker died \(killed by SIGKILL\); what it was doing is tried again"):  # noqa: PT031
        for row in crew.rows(waiting):
            rows.append(row)
            if len(rows) == 2:
                killed = next(iter(crew._crew.values())).process.pid
                os.kill(killed, signal.SIGKILL)
    assert sorted(row.image[:4] for row in rows) == [f"{n:04}" for n in range(PICTURES)]
    assert [row.failure for row in rows] == [None] * PICTURES
    assert killed not in {member.process.pid for member in crew._crew.values()}


@pytest.mark.filterwarnings("ignore:a worker died")
def test_an_image_that_kills_workers_is_given_up_and_the_others_are_done(work, crew, tmp_path):
    rows = list(crew.rows(by(Deadly(picture="0005", times=9, deaths=str(tmp_path)), work)))
    assert len(list(tmp_path.iterdir())) == 1 + crew.retries
    assert sorted(row.image[:4] for row in rows) == [f"{n:04}" for n in range(PICTURES)]
    failures = {row.image[:4]: row.failure for row in rows if row.failure is not None}
    assert failures == {"0005": "its worker died 3 times (killed by SIGKILL)"}


def test_what_stops_a_worker_is_raised_here(work, crew):
    with pytest.warns(UserWarning, match="^too coarse$"):
        assert len(list(crew.rows(by(Faulty(way="warns"), work)))) == PICTURES
    with pytest.raises(ConfigurationError, match=r"^asked for what makes no sense$"):
        list(crew.rows(by(Faulty(way="refuses"), work)))
    assert crew._crew == {}


def test_processes_end_with_the_one_that_made_them(work, tmp_path):
    """Killed, or interrupted: Ctrl-C goes to all of them at once, and only their maker hears it."""
    setting = replace(work[0].setting, measure=Waiting(seconds=0.2))
    makers = {}
    for way in (signal.SIGKILL, signal.SIGINT):
        receiving, sending = quickly.Pipe(duplex=False)
        maker = quickly.Process(target=go_on_for_ever, args=("processes", setting, sending, tmp_path / way.name))
        maker.start()
        sending.close()
        makers[way] = maker, receiving
    for way, (maker, receiving) in makers.items():
        processes = receiving.recv()
        assert len(processes) == 2
        assert all(alive(pid) for pid in processes)
        (os.killpg if way == signal.SIGINT else os.kill)(maker.pid, way)
        maker.join(20)
        assert maker.exitcode == (1 if way == signal.SIGINT else -way)
        assert ended(processes)
        said = (tmp_path / way.name).read_text()
        assert said.count("Traceback") == said.count("KeyboardInterrupt\n") == (way == signal.SIGINT)


def queue_of(worker, tmp_path, count, **changes):
    setting = Setting(
        dataset=pictures(tmp_path / "some", count), network=network(tmp_path), method=Relax(), measure=Waiting()
    )
    plan = {"size": 4, "workers": 2, "retries": 1} | changes
    return Queue([Work(setting, list(range(count)))], worker, **plan)


def taken(queue):
    found = []
    while (batch := queue.take()) is not None:
        found.append(list(batch.left))
    return found


def test_batches_are_so_large_and_leave_no_worker_idle(worker, tmp_path):
    assert taken(queue_of(worker, tmp_path, 10)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    (tmp_path / "few").mkdir()
    assert taken(queue_of(worker, tmp_path / "few", 5, workers=3)) == [[0, 1], [2, 3], [4]]


@pytest.mark.filterwarnings("ignore:a worker died")
def test_what_a_dead_worker_left_is_tried_image_by_image(worker, tmp_path):
    queue = queue_of(worker, tmp_path, 4, workers=1)
    batch = queue.take()
    (row,) = queue.hear(batch, Made(2, worker.failed(batch.setting, 2, "for a test")))
    assert row.failure == "for a test"
    assert list(queue.lose(batch, "gone")) == []
    assert taken(queue) == [[0], [1], [3]]
    assert [row.failure for row in queue.lose(replace(batch, deaths=1), "gone")] == [
        "its worker died 2 times (gone)"
    ] * 3


@pytest.mark.filterwarnings("ignore:a worker died")
def test_for_a_machine_that_is_lost_no_image_is_blamed(worker, tmp_path):
    queue = queue_of(worker, tmp_path, 4, workers=1)
    for _ in range(9):
        assert list(queue.lose(queue.take(), "its machine was lost", blamed=False)) == []
    assert sorted(taken(queue)) == [[0], [1], [2], [3]]


@pytest.mark.filterwarnings("ignore:a worker died")
def test_deaths_without_end_end_it(worker, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "PATIENCE", 2)
    queue = queue_of(worker, tmp_path, 4)
    batch = queue.take()
    for _ in range(4):
        list(queue.lose(batch, "gone"))
    with pytest.raises(RepeatError, match=r"workers died 5 times with nothing done in between \(gone\); run again"):
        list(queue.lose(batch, "gone"))


def test_a_row_of_another_dataset_is_refused(worker, tmp_path):
    queue = queue_of(worker, tmp_path, 4)
    batch = queue.take()
    with pytest.raises(ConfigurationError, match="a worker sees another dataset or encoder than is seen here"):
        list(queue.hear(batch, Made(0, worker.failed(replace(batch.setting, seed=1), 0, ""))))


def test_a_fault_of_the_program_is_raised_with_where_it_was(worker, work):
    batch = Queue(by(Faulty(way="fails"), work), worker, size=4, workers=1, retries=0).take()
    made, stopped = batches.answers(worker, batch)
    assert made.row.scores == {"number": 0.0}
    with pytest.raises(RuntimeError, match=r"(?s)a worker failed:.*crews\.py.*ZeroDivisionError: by nothing"):
        list(Queue([], worker, size=1, workers=1, retries=0).hear(batch, stopped))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"devices": ()}, "a device is needed"), ({"batch": 0}, "batch"), ({"retries": -1}, "retries")],
)
def test_nonsense_is_refused(worker, options, words):
    with pytest.raises(ConfigurationError, match=words):
        Processes(worker=worker, **options)
