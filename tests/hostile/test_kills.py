"""Tests that no result of `explain` and `screen` is lost or made twice when they are killed at any moment."""

import random
from collections import Counter

import pytest
from hostile.kills import Command, files_below, kill_when
from hostile.outputs import Run, expect_same, results, run_once, same_file, whole
from hostile.verdicts import Case, Verdict
from small_work import pictures

pytestmark = pytest.mark.slow
FEW, MANY = 2, 5
"""Numbers of photos in the short and in the long part."""
COMMANDS = ("explain", "screen")
OPTIONS = {
    "explain": ("--estimator", "exact", "--masks", 20, "--repeats", 2),
    "screen": ("--masks", 40, "--repeats", 2),
}
LONG_KILLS = {"explain": 42, "screen": 42}
"""Number of kills in the long part."""


def undisturbed(folder, photos):
    """Return an undisturbed run of each command."""
    known = ("--known", pictures(folder / "known", photos))
    return {
        command: run_once(folder / command, command, *options, *(known if command == "screen" else ()), photos=photos)
        for command, options in OPTIONS.items()
    }


@pytest.fixture(scope="module")
def short_runs(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("short"), FEW)


@pytest.fixture(scope="module")
def long_runs(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("long"), MANY)


class Killed:
    """A folder that a command fills, and in which it is killed."""

    def __init__(self, run: Run, folder, seed: int) -> None:
        self.run, self.folder, self.rng = run, folder, random.Random(seed)
        self.out, self.all = folder / "out", len(results(run.whole))
        self.arguments = (*run.command, "--out", self.out)

    def kill(self) -> str:
        """Start the command and kill it after some of its files are written; return how far it had come.

        Most kills come after up to three more files. 15 % come before the first file, so that the start of the command
        is interrupted too, and 5 % after the last, while the command ends.
        """
        before = self.done()
        moment, wanted = self.rng.random(), len(self.visible()) + self.rng.randint(0, 3)
        wanted = 0 if moment < 0.15 else self.all if moment > 0.95 else wanted
        command = Command(self.arguments, self.folder / "output")
        # After a file, a short time passes, so that the next one may be half written when the command is killed.
        delay = self.rng.random() * 0.15 if wanted > 0 else 0.0
        kill = kill_when(command, lambda: len(self.visible()) >= wanted, self.out, delay=delay)
        assert before.items() <= self.done().items(), "what was done has changed"
        if not kill.killed:
            return "ended"
        return "partly" if 0 < len(self.visible()) < self.all else "before or after"

    def visible(self) -> list:
        return [path for path in files_below(self.out) if not path.name.startswith(".")]

    def halves(self) -> list:
        """Return the visible files that are not whole."""
        return [path for path in self.visible() if not whole(path)]

    def done(self) -> dict:
        """Return the results of every finished image, and check that they equal those of an undisturbed run."""
        finished = {}
        for name, path in results(self.out).items():
            if path.suffix == ".json" and path.name != "screen.json":
                for suffix in (".json", ".npz", ".png"):
                    same_file(path.with_suffix(suffix), (self.run.whole / name).with_suffix(suffix))
                    finished[path.with_suffix(suffix)] = path.with_suffix(suffix).read_bytes()
        return finished

    def finish(self) -> None:
        """Run the command once more, undisturbed, and compare its results with those of a run that was never killed."""
        done = self.done()
        command = Command(self.arguments, self.folder / "output")
        assert command.finish() == 0, command.output.read_text()
        assert done.items() <= self.done().items()
        expect_same(self.out, self.run.whole)
        assert set(results(self.out)) == set(results(self.run.whole))


def kill_often(run: Run, folder, judge, *, kills: int, seed: int) -> int:
    """Kill a command `kills` times, in as many folders as needed; return how many kills found some results stored."""
    counts, number = Counter(), 0
    while counts["partly"] + counts["before or after"] < kills:
        subfolder = folder / str(number)
        subfolder.mkdir()
        killed = Killed(run, subfolder, seed + number)
        while counts["partly"] + counts["before or after"] < kills and len(killed.visible()) < killed.all:
            moment = killed.kill()
            counts[moment] += 1
            if moment != "ended":
                verdict = Verdict("half file" if killed.halves() else "right")
                judge(f"kills {moment}", verdict, Case(name=moment, make=killed.kill, expected="right"))
        killed.finish()
        number += 1
    return counts["partly"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_killed_three_times_continues(command, short_runs, judge, tmp_path):
    assert kill_often(short_runs[command], tmp_path, judge, kills=3, seed=1) >= 1


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_killed_many_times_continues(command, long_runs, judge, tmp_path):
    assert (
        kill_often(long_runs[command], tmp_path, judge, kills=LONG_KILLS[command], seed=100)
        >= 0.7 * LONG_KILLS[command]
    )


@pytest.mark.hostile
def test_two_simultaneous_runs_do_not_remove_each_others_drafts(short_runs, tmp_path):
    run = short_runs["explain"]
    both = [Command((*run.command, "--out", tmp_path / "out"), tmp_path / f"output{n}") for n in range(2)]
    assert [command.finish() for command in both] == [0, 0]
    expect_same(tmp_path / "out", run.whole)
    assert run.into(tmp_path / "out") == ("right", "")


@pytest.mark.hostile
def test_killing_one_of_two_runs_does_not_affect_the_other(long_runs, tmp_path):
    run = long_runs["explain"]
    arguments = (*run.command, "--out", tmp_path / "out")
    living, killed = (Command(arguments, tmp_path / name) for name in ("living", "killed"))
    kill_when(killed, lambda: len(files_below(tmp_path / "out")) > 3, tmp_path / "out")
    assert run.into(tmp_path / "out").kind == "right"
    assert living.finish() == 0, living.output.read_text()
    assert run.into(tmp_path / "out").kind == "right"
    expect_same(tmp_path / "out", run.whole)
