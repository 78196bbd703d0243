"""Tests of the executors `local` and `processes`, and of the queue of work."""

import os
import signal
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from process_tree import alive, ended
from small_work import PICTURES, Deadly, Faulty, Waiting, network, pictures, work_for_ever
from stores import bits, forkserver

from repeat_xai.errors import ConfigurationError, RepeatError
from repeat_xai.experiments.executors import work_queue
from repeat_xai.experiments.executors.executor import Executor, Local, Work
from repeat_xai.experiments.executors.processes import Processes
from repeat_xai.experiments.executors.work_queue import NumberedRow, WorkBatch, WorkerWarning, WorkQueue, work_through
from repeat_xai.experiments.settings import Setting
from repeat_xai.methods.relax import Relax


@pytest.fixture(scope="module")
def processes(worker):
    """Two processes for all tests; those that die are replaced."""
    executor = Processes(worker=worker, devices=("cpu", "cpu"), batch_size=4)
    yield executor
    executor.close()


def with_measure(measure, work):
    """Return the work for the readable pictures, with another measure."""
    return [Work(replace(work[0].setting, measure=measure), list(range(PICTURES)))]


@pytest.mark.slow
def test_processes_make_the_same_rows_as_this_process(work, worker, processes):
    assert isinstance(processes, Executor)
    assert isinstance(Local(worker=worker), Executor)
    expected = {row.key: bits(row, but=("seconds",)) for row in Local(worker=worker).rows(work)}
    assert len(expected) == 3 * (PICTURES + 1)
    rows = list(processes.rows(work))
    assert len(rows) == len(expected)
    assert {row.key: bits(row, but=("seconds",)) for row in rows} == expected
    assert sum(row.failure is not None for row in rows) == 3
    first_ids = process_ids(processes)
    assert {row.key: bits(row, but=("seconds",)) for row in processes.rows(work)} == expected
    assert process_ids(processes) == first_ids
    assert list(processes.rows([])) == []


def process_ids(executor):
    return {process.process.pid for process in executor._processes.values()}


@pytest.mark.slow
def test_killing_a_worker_in_the_middle_loses_no_row(work, processes):
    waiting = with_measure(Waiting(seconds=0.1), work)
    rows, killed = [], None
    with pytest.warns(UserWarning, match=r"a worker died \(killed by SIGKILL\)"):  # noqa: PT031
        for row in processes.rows(waiting):
            rows.append(row)
            if len(rows) == 2:
                killed = min(process_ids(processes))
                os.kill(killed, signal.SIGKILL)
    assert sorted(row.image[:4] for row in rows) == [f"{n:04}" for n in range(PICTURES)]
    assert [row.failure for row in rows] == [None] * PICTURES
    assert killed not in process_ids(processes)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a worker died")
def test_an_image_that_kills_workers_is_given_up_and_the_others_get_rows(work, processes, tmp_path):
    rows = list(processes.rows(with_measure(Deadly(picture="0005", times=9, deaths=str(tmp_path)), work)))
    assert len(list(tmp_path.iterdir())) == 1 + processes.retries
    assert sorted(row.image[:4] for row in rows) == [f"{n:04}" for n in range(PICTURES)]
    failures = {row.image[:4]: row.failure for row in rows if row.failure is not None}
    assert failures == {"0005": "its worker died 3 times (killed by SIGKILL)"}


@pytest.mark.slow
def test_warnings_and_errors_of_a_worker_are_raised_in_this_process(work, processes):
    with pytest.warns(UserWarning, match="^too coarse$"):
        assert len(list(processes.rows(with_measure(Faulty(way="warns"), work)))) == PICTURES
    with pytest.raises(ConfigurationError, match="makes no sense"):
        list(processes.rows(with_measure(Faulty(way="refuses"), work)))
    assert processes._processes == {}


@pytest.mark.slow
def test_processes_end_with_the_process_that_started_them(work, tmp_path):
    """They end when it is killed, and when Ctrl-C reaches the whole group, of which it alone shows a traceback."""
    setting = replace(work[0].setting, measure=Waiting(seconds=0.2))
    parents = {}
    for kind in (signal.SIGKILL, signal.SIGINT):
        receiving, sending = forkserver.Pipe(duplex=False)
        parent = forkserver.Process(target=work_for_ever, args=("processes", setting, sending, tmp_path / kind.name))
        parent.start()
        sending.close()
        parents[kind] = parent, receiving
    for kind, (parent, receiving) in parents.items():
        workers = receiving.recv()
        assert len(workers) == 2
        assert all(alive(pid) for pid in workers)
        (os.killpg if kind == signal.SIGINT else os.kill)(parent.pid, kind)
        parent.join(20)
        assert parent.exitcode == (1 if kind == signal.SIGINT else -kind)
        assert ended(workers)
        stderr = (tmp_path / kind.name).read_text()
        assert stderr.count("Traceback") == stderr.count("KeyboardInterrupt\n") == (kind == signal.SIGINT)


def queue_of(worker, tmp_path, count, **changes):
    setting = Setting(
        dataset=pictures(tmp_path / "some", count), encoder_spec=network(tmp_path), method=Relax(), measure=Waiting()
    )
    options = {"batch_size": 4, "workers": 2, "retries": 1} | changes
    return WorkQueue([Work(setting, list(range(count)))], worker, **options)


def take_all(queue):
    """Return the numbers of the images in each batch of a queue, and empty it."""
    batches = []
    while (batch := queue.take()) is not None:
        batches.append(list(batch.pending))
    return batches


def test_batches_have_at_most_batch_size_images_and_leave_no_worker_idle(worker, tmp_path):
    assert take_all(queue_of(worker, tmp_path, 10)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    (tmp_path / "few").mkdir()
    assert take_all(queue_of(worker, tmp_path / "few", 5, workers=3)) == [[0, 1], [2, 3], [4]]


@pytest.mark.filterwarnings("ignore:a worker died")
def test_images_left_by_a_dead_worker_are_tried_one_by_one(worker, tmp_path):
    queue = queue_of(worker, tmp_path, 4, workers=1)
    batch = queue.take()
    (row,) = queue.receive(batch, NumberedRow(2, worker.failed_row(batch.setting, 2, "for a test")))
    assert row.failure == "for a test"
    assert list(queue.return_batch(batch, "gone")) == []
    assert take_all(queue) == [[0], [1], [3]]
    assert [row.failure for row in queue.return_batch(replace(batch, crashes=1), "gone")] == [
        "its worker died 2 times (gone)"
    ] * 3


@pytest.mark.filterwarnings("ignore:a worker died")
def test_the_loss_of_a_machine_does_not_count_against_images(worker, tmp_path):
    queue = queue_of(worker, tmp_path, 4, workers=1)
    for _ in range(9):
        assert list(queue.return_batch(queue.take(), "its machine was lost", count_crash=False)) == []
    assert sorted(take_all(queue)) == [[0], [1], [2], [3]]


@pytest.mark.filterwarnings("ignore:a worker died")
def test_many_crashes_in_a_row_end_the_run(worker, tmp_path, monkeypatch):
    monkeypatch.setattr(work_queue, "MAX_CRASHES_PER_WORKER", 2)
    queue = queue_of(worker, tmp_path, 4)
    batch = queue.take()
    for _ in range(4):
        list(queue.return_batch(batch, "gone"))
    with pytest.raises(RepeatError, match=r"workers died 5 times in a row"):
        list(queue.return_batch(batch, "gone"))


def test_a_row_of_another_dataset_is_refused(worker, tmp_path):
    queue = queue_of(worker, tmp_path, 4)
    batch = queue.take()
    with pytest.raises(ConfigurationError, match="another dataset or encoder"):
        list(queue.receive(batch, NumberedRow(0, worker.failed_row(replace(batch.setting, seed=1), 0, ""))))


def test_an_unexpected_error_of_a_worker_is_raised_with_its_traceback(worker, work):
    batch = WorkQueue(with_measure(Faulty(way="fails"), work), worker, batch_size=4, workers=1, retries=0).take()
    made, stopped = work_through(worker, batch)
    assert made.row.scores == {"number": 0.0}
    with pytest.raises(RuntimeError, match=r"(?s)a worker failed:.*small_work\.py.*ZeroDivisionError: by nothing"):
        list(WorkQueue([], worker, batch_size=1, workers=1, retries=0).receive(batch, stopped))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"devices": ()}, "a device is needed"), ({"batch_size": 0}, "batch_size"), ({"retries": -1}, "retries")],
)
def test_invalid_options_are_refused(worker, options, words):
    with pytest.raises(ConfigurationError, match=words):
        Processes(worker=worker, **options)


@dataclass(frozen=True)
class WarnsLast:
    """A measure that warns after its last image, and then fails or ends."""

    explains: ClassVar[bool] = False
    error: Exception | None

    def __call__(self, encoder, method, tasks, *, seed):
        yield from ()
        warnings.warn("the last word", UserWarning, stacklevel=1)
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [None, RepeatError("no encoder"), ZeroDivisionError()])
def test_a_warning_after_the_last_row_reaches_the_user(worker, work, error):
    setting = next(iter(with_measure(WarnsLast(error), work))).setting
    warning, *end = work_through(worker, WorkBatch(setting=setting, pending={0: ""}))
    assert warning == WorkerWarning("the last word")
    assert len(end) == (error is not None)
