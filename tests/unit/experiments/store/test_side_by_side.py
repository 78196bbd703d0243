"""Several processes at one store, killed ones among them, lose nothing and spoil nothing."""

import signal
from multiprocessing.connection import wait

import pytest
from stores import add_and_merge, bits, compact_and_die, merge_and_die, quickly, row

from repeat_xai.errors import OutputError
from repeat_xai.experiments.store import merging
from repeat_xai.experiments.store import row_store as rows
from repeat_xai.experiments.store import store_folder as folder
from repeat_xai.experiments.store.row_store import Store
from repeat_xai.experiments.store.store_folder import Folder, GoneError


def test_processes_add_and_merge_at_the_same_time(tmp_path):
    """Whatever a process has said is there is found by every reading that begins afterwards."""
    ours, processes = [], []
    for name in ("a", "b"):
        receiving, sending = quickly.Pipe(duplex=False)
        processes.append(quickly.Process(target=add_and_merge, args=(tmp_path, name, 60, sending), daemon=True))
        processes[-1].start()
        sending.close()
        ours.append(receiving)
    store, there, readings = Store(tmp_path), set(), 0
    while ours:
        for connection in wait(ours):
            try:
                there.add(connection.recv())
            except EOFError:
                ours.remove(connection)
        expected = set(there)
        assert expected <= set(store.done())
        readings += 1
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert readings > 20
    wanted = {f"{name}-{n}": bits(row(f"{name}-{n}", code=(float(n),))) for name in ("a", "b") for n in range(60)}
    assert {key: bits(row) for key, row in store.rows().items()} == wanted
    assert len(store._folder.sizes()) < 60
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_merge_killed_between_writing_and_removing_loses_nothing(tmp_path):
    store = Store(tmp_path)
    for number in range(5):
        store.add([row(str(number), code=(1 / (number + 1),))])
    before = {key: bits(row) for key, row in store.rows().items()}
    process = quickly.Process(target=merge_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(store._folder.sizes()) == 5  # four parts, and all five rows in one file
    assert {key: bits(row) for key, row in store.rows().items()} == before
    store.merge(at_least=2)
    store.compact()
    assert {key: bits(row) for key, row in store.rows().items()} == before
    assert sum(len(part) for part in store._parts(None)) == 5


def test_a_file_merged_while_it_is_read_is_found_in_what_it_became(tmp_path, monkeypatch):
    """Even if the listing, which takes a while, names neither."""
    store, sizes = Store(tmp_path), Folder.sizes
    for number in range(4):
        store.add([row(str(number))])
    shown = sizes(store._folder)
    store.merge(at_least=2)
    assert not shown.keys() & sizes(store._folder).keys()
    late = iter([dict(list(shown.items())[:2])])
    monkeypatch.setattr(Folder, "sizes", lambda folder: next(late, None) or sizes(folder))
    assert set(store.done()) == {"0", "1", "2", "3"}


def test_a_file_that_is_listed_for_ever_and_never_there_is_named(tmp_path, monkeypatch):
    store, sizes = Store(tmp_path), Folder.sizes
    store.add([row()])
    monkeypatch.setattr(Folder, "sizes", lambda folder: sizes(folder) | {"ghost.parquet": 1})
    monkeypatch.setattr(rows, "PAUSES", (0.0, 0.0))
    with pytest.raises(OutputError, match=r"ghost\.parquet: is listed and not there; remove it and run again"):
        store.done()
    with pytest.raises(GoneError):
        store._folder.read("ghost.parquet")


def test_merging_holds_only_so_much_in_memory(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for number in range(20):
        store.add([row(str(number), code=tuple((number + 1) / (n + 1) for n in range(20_000)))])  # 160 kB
    held, replace = [], merging._replace

    def replaced(folder, parts):
        held.append(sum(part.nbytes for batches in parts.values() for part in batches))
        replace(folder, parts)

    monkeypatch.setattr(merging, "_replace", replaced)
    monkeypatch.setattr(merging, "HELD", 500_000)
    before = {key: bits(row) for key, row in store.rows().items()}
    store.merge()
    assert max(held) < 500_000 + 200_000
    assert len(store._folder.sizes()) == 5
    assert {key: bits(row) for key, row in store.rows().items()} == before
    monkeypatch.setattr(merging, "LARGE", 100_000)
    held.clear()
    store.merge(at_least=2)
    assert held == []


def test_files_of_a_size_are_merged_so_that_each_row_is_written_few_times(tmp_path, monkeypatch):
    written, write = [], Folder.write
    monkeypatch.setattr(Folder, "write", lambda folder, content: (written.append(len(content)), write(folder, content)))
    store = Store(tmp_path)
    for number in range(200):
        store.add([row(str(number), code=tuple(1 / (number + n + 1) for n in range(200)))])
        store.merge()
    assert len(store._folder.sizes()) < 40
    assert len(store.done()) == 200
    merged = len(written) - 200
    assert 0 < merged < 200 / 8
    assert sum(sorted(written)[-merged:]) < sum(written) / 2


def rows_on_disk(store):
    return sum(len(part) for part in store._parts(None))


def test_rows_that_two_runs_have_made_are_there_once_after_compaction(tmp_path):
    store = Store(tmp_path)
    ours = [row(str(number), scores={"a": number / 7, "b": 1.0}) for number in range(6)]
    store.add(ours[:4])
    store.add(ours[2:])
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


def test_scores_that_are_in_one_row_alone_survive_compaction(tmp_path):
    store = Store(tmp_path)
    for scores in ({"a": 1.0, "b": 2.0}, {"a": 1.0}, {"a": 1.0, "c": 3.0}, {"c": 3.0}):
        store.add([row("0", scores=scores)])
    assert store.done() == {"0": {"a", "b", "c"}}
    store.compact()
    assert rows_on_disk(store) == 2
    assert store.done() == {"0": {"a", "b", "c"}}
    assert store.rows()["0"].scores == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_compaction_waits_for_another_run_that_merges(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for _ in range(2):
        store.add([row()])
    monkeypatch.setattr(folder, "PATIENCE", 0.2)
    with store._folder.alone():
        Store(tmp_path).compact()
        assert rows_on_disk(store) == 2
    store.compact()
    assert rows_on_disk(store) == 1


def test_a_compaction_killed_between_writing_and_removing_loses_nothing(tmp_path):
    store = Store(tmp_path)
    store.add([row(str(number)) for number in range(5)])
    store.add([row(str(number)) for number in range(3, 8)])
    process = quickly.Process(target=compact_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert set(store.done()) == {str(number) for number in range(8)}
    store.compact()
    assert rows_on_disk(store) == 8
    assert set(store.done()) == {str(number) for number in range(8)}
