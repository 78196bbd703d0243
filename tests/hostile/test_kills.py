"""`explain` and `screen`, killed anywhere: nothing that was done is lost or done twice, and nothing is left over."""

import random
from collections import Counter

import pytest
from hostile.kills import Command, files_below, kill_when
from hostile.outputs import Run, expect_same, made, results, same_file, whole
from hostile.verdicts import Case, Verdict
from small_work import pictures

FEW, MANY = 2, 5
"""Photos of the short part and of the long one."""
COMMANDS = ("explain", "screen")
OPTIONS = {
    "explain": ("--estimator", "exact", "--masks", 20, "--repeats", 2),
    "screen": ("--masks", 40, "--repeats", 2),
}
LONG = {"explain": 42, "screen": 42}
"""Kills in the long part."""


def undisturbed(folder, photos):
    """What a run of each command that nobody kills leaves."""
    known = ("--reference", pictures(folder / "known", photos))
    return {
        command: made(folder / command, command, *options, *(known if command == "screen" else ()), photos=photos)
        for command, options in OPTIONS.items()
    }


@pytest.fixture(scope="module")
def short_runs(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("short"), FEW)


@pytest.fixture(scope="module")
def long_runs(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("long"), MANY)


class Killed:
    """A folder that a command is to fill, and is killed while it does."""

    def __init__(self, run: Run, folder, seed: int) -> None:
        self.run, self.folder, self.chance = run, folder, random.Random(seed)
        self.out, self.all = folder / "out", len(results(run.whole))
        self.arguments = (*run.command, "--out", self.out)

    def kill(self) -> str:
        """Begin the command and kill it after some of its files are written. Return how far it had come."""
        before = self.done()
        share, wanted = self.chance.random(), len(self.visible()) + self.chance.randint(0, 3)
        wanted = 0 if share < 0.15 else self.all if share > 0.95 else wanted
        command = Command(self.arguments, self.folder / "said")
        delay = self.chance.random() * 0.15 * (wanted > 0)
        death = kill_when(command, lambda: len(self.visible()) >= wanted, self.out, delay=delay)
        assert before.items() <= self.done().items(), "what was done has changed"
        if not death.killed:
            return "ended"
        return "partly" if 0 < len(self.visible()) < self.all else "before or after"

    def visible(self) -> list:
        return [path for path in files_below(self.out) if not path.name.startswith(".")]

    def halves(self) -> list:
        """Files in their places that are not whole."""
        return [path for path in self.visible() if not whole(path)]

    def done(self) -> dict:
        """The results of every image that counts as done, byte for byte; each is what an undisturbed run makes."""
        found = {}
        for name, path in results(self.out).items():
            if path.suffix == ".json" and path.name != "screen.json":
                for suffix in (".json", ".npz", ".png"):
                    same_file(path.with_suffix(suffix), (self.run.whole / name).with_suffix(suffix))
                    found[path.with_suffix(suffix)] = path.with_suffix(suffix).read_bytes()
        return found

    def finish(self) -> None:
        """Run the command once more, undisturbed, and compare its results with those of a run that was never killed."""
        done = self.done()
        command = Command(self.arguments, self.folder / "said")
        assert command.finish() == 0, command.said.read_text()
        assert done.items() <= self.done().items()
        expect_same(self.out, self.run.whole)
        assert set(results(self.out)) == set(results(self.run.whole))


def kill_often(run: Run, folder, judge, *, kills: int, seed: int) -> int:
    """Kill a command so many times, in as many folders as that takes; how many kills found results partly written."""
    counts, number = Counter(), 0
    while counts["partly"] + counts["before or after"] < kills:
        here = folder / str(number)
        here.mkdir()
        killed = Killed(run, here, seed + number)
        while counts["partly"] + counts["before or after"] < kills and len(killed.visible()) < killed.all:
            found = killed.kill()
            counts[found] += 1
            if found != "ended":
                verdict = Verdict("half file" if killed.halves() else "right")
                judge(f"kills {found}", verdict, Case(name=found, make=killed.kill, expected="right"))
        killed.finish()
        number += 1
    return counts["partly"]


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_three_times_it_goes_on(command, short_runs, judge, tmp_path):
    assert kill_often(short_runs[command], tmp_path, judge, kills=3, seed=1) >= 1


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_many_times_it_goes_on(command, long_runs, judge, tmp_path):
    assert kill_often(long_runs[command], tmp_path, judge, kills=LONG[command], seed=100) >= 0.7 * LONG[command]


@pytest.mark.hostile
def test_two_runs_at_once_do_not_take_each_others_drafts(short_runs, tmp_path):
    run = short_runs["explain"]
    both = [Command((*run.command, "--out", tmp_path / "out"), tmp_path / f"said{n}") for n in range(2)]
    assert [command.finish() for command in both] == [0, 0]
    expect_same(tmp_path / "out", run.whole)
    assert run.into(tmp_path / "out") == ("right", "")


@pytest.mark.hostile
def test_a_run_killed_beside_a_living_one_leaves_it_in_peace(long_runs, tmp_path):
    run = long_runs["explain"]
    arguments = (*run.command, "--out", tmp_path / "out")
    living, killed = (Command(arguments, tmp_path / name) for name in ("living", "killed"))
    kill_when(killed, lambda: len(files_below(tmp_path / "out")) > 3, tmp_path / "out")
    assert run.into(tmp_path / "out").kind == "right"
    assert living.finish() == 0, living.said.read_text()
    assert run.into(tmp_path / "out").kind == "right"
    expect_same(tmp_path / "out", run.whole)
