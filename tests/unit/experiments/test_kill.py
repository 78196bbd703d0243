"""A run that is killed many times ends with the same rows as a run that is not."""

import random
import signal

import pytest
from small_work import resume, work_in
from stores import bits, forkserver

from repeat_xai.experiments.executors.executor import Local
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker

KILLS, PICTURES = 10, 30


def start(folder, work):
    """Start a process that continues the work; return it, and the connection on which it sends the keys of its rows."""
    receiving, sending = forkserver.Pipe(duplex=False)
    process = forkserver.Process(target=resume, args=(folder, work, sending), daemon=True)
    process.start()
    sending.close()
    return process, receiving


@pytest.mark.slow
def test_a_run_killed_ten_times_ends_with_the_same_rows(tmp_path):
    work = work_in(tmp_path, PICTURES)
    rows = len(work) * (PICTURES + 1)
    undisturbed = Local(worker=Worker(device="cpu", root=tmp_path)).rows(work)
    expected = {row.key: bits(row, but=("seconds",)) for row in undisturbed}
    assert len(expected) == rows
    generator, store, kept = random.Random(0), RowStore(tmp_path / "rows"), []
    for _ in range(KILLS):
        process, keys = start(tmp_path, work)
        for _ in range(generator.randint(1, rows // KILLS - 2)):
            keys.recv()
        process.join(generator.random() * 0.02)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        kept.append(len(store.rows()))
    assert kept == sorted(kept)
    assert 0 < kept[-1] < rows
    process, keys = start(tmp_path, work)
    process.join()
    assert process.exitcode == 0
    final = store.rows()
    assert {key: bits(row, but=("seconds",)) for key, row in final.items()} == expected
    assert sum(row.failure is not None for row in final.values()) == len(work)
