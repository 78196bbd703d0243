"""Several processes that use one store, some of which are killed, lose no row and damage no file."""

import signal
from multiprocessing.connection import wait

import pytest
from stores import add_and_merge, bits, compact_and_die, forkserver, merge_and_die, row

from repeat_xai.errors import OutputError
from repeat_xai.experiments.store import merging, row_store, store_folder
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.store.store_folder import GoneError, StoreFolder


@pytest.mark.slow
def test_processes_add_and_merge_at_the_same_time(tmp_path):
    """A row that a process has reported as stored is found by every reading that begins afterwards."""
    connections, processes = [], []
    for name in ("a", "b"):
        receiving, sending = forkserver.Pipe(duplex=False)
        processes.append(forkserver.Process(target=add_and_merge, args=(tmp_path, name, 60, sending), daemon=True))
        processes[-1].start()
        sending.close()
        connections.append(receiving)
    store, reported, readings = RowStore(tmp_path), set(), 0
    while connections:
        for connection in wait(connections):
            try:
                reported.add(connection.recv())
            except EOFError:
                connections.remove(connection)
        expected = set(reported)
        assert expected <= set(store.score_names())
        readings += 1
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert readings > 20
    wanted = {f"{name}-{n}": bits(row(f"{name}-{n}", code=(float(n),))) for name in ("a", "b") for n in range(60)}
    assert {key: bits(row) for key, row in store.rows().items()} == wanted
    assert len(store._folder.sizes()) < 60
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_merge_killed_between_writing_and_removing_loses_no_row(tmp_path):
    store = RowStore(tmp_path)
    for number in range(5):
        store.add([row(str(number), code=(1 / (number + 1),))])
    before = {key: bits(row) for key, row in store.rows().items()}
    process = forkserver.Process(target=merge_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(store._folder.sizes()) == 5  # four parts, and all five rows in one file
    assert {key: bits(row) for key, row in store.rows().items()} == before
    store.merge(at_least=2)
    store.compact()
    assert {key: bits(row) for key, row in store.rows().items()} == before
    assert sum(len(batch) for batch in store._batches(None)) == 5


def test_rows_of_a_file_that_is_merged_during_reading_are_found_in_the_merged_file(tmp_path, monkeypatch):
    """This holds even if the first listing is outdated and names only some of the files that were merged."""
    store, sizes = RowStore(tmp_path), StoreFolder.sizes
    for number in range(4):
        store.add([row(str(number))])
    outdated = sizes(store._folder)
    store.merge(at_least=2)
    assert not outdated.keys() & sizes(store._folder).keys()
    listings = iter([dict(list(outdated.items())[:2])])
    monkeypatch.setattr(StoreFolder, "sizes", lambda folder: next(listings, None) or sizes(folder))
    assert set(store.score_names()) == {"0", "1", "2", "3"}


def test_a_file_that_stays_listed_but_missing_is_named_in_an_error(tmp_path, monkeypatch):
    store, sizes = RowStore(tmp_path), StoreFolder.sizes
    store.add([row()])
    monkeypatch.setattr(StoreFolder, "sizes", lambda folder: sizes(folder) | {"ghost.parquet": 1})
    monkeypatch.setattr(row_store, "RETRY_PAUSES", (0.0, 0.0))
    with pytest.raises(OutputError, match=r"ghost\.parquet: is listed but missing"):
        store.score_names()
    with pytest.raises(GoneError):
        store._folder.read("ghost.parquet")


def test_merging_holds_a_limited_number_of_bytes_in_memory(tmp_path, monkeypatch):
    store = RowStore(tmp_path)
    for number in range(20):
        store.add([row(str(number), code=tuple((number + 1) / (n + 1) for n in range(20_000)))])  # 160 kB
    held, replace = [], merging._replace

    def replace_and_note(folder, files):
        held.append(sum(batch.nbytes for batches in files.values() for batch in batches))
        replace(folder, files)

    monkeypatch.setattr(merging, "_replace", replace_and_note)
    monkeypatch.setattr(merging, "MAX_BYTES_IN_MEMORY", 500_000)
    before = {key: bits(row) for key, row in store.rows().items()}
    store.merge()
    assert max(held) < 500_000 + 200_000
    assert len(store._folder.sizes()) == 5
    assert {key: bits(row) for key, row in store.rows().items()} == before
    monkeypatch.setattr(merging, "MAX_MERGED_BYTES", 100_000)
    held.clear()
    store.merge(at_least=2)
    assert held == []


def test_files_of_one_size_are_merged_such_that_each_row_is_written_few_times(tmp_path, monkeypatch):
    written, write = [], StoreFolder.write
    monkeypatch.setattr(
        StoreFolder, "write", lambda folder, content: (written.append(len(content)), write(folder, content))
    )
    store = RowStore(tmp_path)
    for number in range(200):
        store.add([row(str(number), code=tuple(1 / (number + n + 1) for n in range(200)))])
        store.merge()
    assert len(store._folder.sizes()) < 40
    assert len(store.score_names()) == 200
    merged = len(written) - 200
    assert 0 < merged < 200 / 8
    assert sum(sorted(written)[-merged:]) < sum(written) / 2


def rows_on_disk(store):
    return sum(len(batch) for batch in store._batches(None))


def test_rows_that_two_runs_have_made_are_stored_once_after_compaction(tmp_path):
    store = RowStore(tmp_path)
    rows = [row(str(number), scores={"a": number / 7, "b": 1.0}) for number in range(6)]
    store.add(rows[:4])
    store.add(rows[2:])
    store.add([row("0", failure="out of memory"), row("7", failure="first")])
    store.add([row("7", failure="second")])
    before = {key: bits(row) for key, row in store.rows().items()}
    assert rows_on_disk(store) == 11
    store.compact()
    assert rows_on_disk(store) == 7
    assert {key: bits(row, but=("failure",)) for key, row in store.rows().items()} == {
        key: {name: value for name, value in row.items() if name != "failure"} for key, row in before.items()
    }
    assert [key for key, row in store.rows().items() if row.failure] == ["7"]


def test_scores_that_only_one_row_holds_survive_compaction(tmp_path):
    store = RowStore(tmp_path)
    for scores in ({"a": 1.0, "b": 2.0}, {"a": 1.0}, {"a": 1.0, "c": 3.0}, {"c": 3.0}):
        store.add([row("0", scores=scores)])
    assert store.score_names() == {"0": {"a", "b", "c"}}
    store.compact()
    assert rows_on_disk(store) == 2
    assert store.score_names() == {"0": {"a", "b", "c"}}
    assert store.rows()["0"].scores == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_compaction_waits_for_another_run_that_merges(tmp_path, monkeypatch):
    store = RowStore(tmp_path)
    for _ in range(2):
        store.add([row()])
    monkeypatch.setattr(store_folder, "LOCK_TIMEOUT", 0.2)
    with store._folder.locked():
        RowStore(tmp_path).compact()
        assert rows_on_disk(store) == 2
    store.compact()
    assert rows_on_disk(store) == 1


def test_a_compaction_killed_between_writing_and_removing_loses_no_row(tmp_path):
    store = RowStore(tmp_path)
    store.add([row(str(number)) for number in range(5)])
    store.add([row(str(number)) for number in range(3, 8)])
    process = forkserver.Process(target=compact_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert set(store.score_names()) == {str(number) for number in range(8)}
    store.compact()
    assert rows_on_disk(store) == 8
    assert set(store.score_names()) == {str(number) for number in range(8)}
