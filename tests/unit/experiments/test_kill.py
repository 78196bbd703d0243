"""A run killed anywhere, ten times over, ends with the rows of one that was not."""

import random
import signal

from crews import resumed, work_in
from stores import bits, quickly

from repeat_xai.experiments.executors.local import Local
from repeat_xai.experiments.store.row_store import Store
from repeat_xai.experiments.worker import Worker

KILLS, PICTURES = 10, 30


def begun(folder, work):
    """A process that goes on with the work, and where it tells of its rows."""
    receiving, sending = quickly.Pipe(duplex=False)
    process = quickly.Process(target=resumed, args=(folder, work, sending), daemon=True)
    process.start()
    sending.close()
    return process, receiving


def test_killed_ten_times_it_ends_with_the_same_rows(tmp_path):
    work = work_in(tmp_path, PICTURES)
    rows = len(work) * (PICTURES + 1)
    undisturbed = Local(worker=Worker(device="cpu", root=tmp_path)).rows(work)
    expected = {row.key: bits(row, but=("seconds",)) for row in undisturbed}
    assert len(expected) == rows
    chance, store, kept = random.Random(0), Store(tmp_path / "rows"), []
    for _ in range(KILLS):
        process, told = begun(tmp_path, work)
        for _ in range(chance.randint(1, rows // KILLS - 2)):
            told.recv()
        process.join(chance.random() * 0.02)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        kept.append(len(store.rows()))
    assert kept == sorted(kept)
    assert 0 < kept[-1] < rows
    process, told = begun(tmp_path, work)
    process.join()
    assert process.exitcode == 0
    found = store.rows()
    assert {key: bits(row, but=("seconds",)) for key, row in found.items()} == expected
    assert sum(row.failure is not None for row in found.values()) == len(work)
