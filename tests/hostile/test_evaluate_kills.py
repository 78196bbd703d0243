"""Tests that no row or map of `evaluate` is lost, duplicated or changed when it is killed at any moment."""

import random
from collections import Counter

import pytest
from hostile.evaluations import evaluate_once, every_row, expect_maps, expect_same_results, rows_of
from hostile.kills import Command, files_below, kill_when, write_every_row
from hostile.verdicts import Case, Verdict

OPTIONS = {"rows": (), "rows and maps": ("--maps",)}
pytestmark = pytest.mark.slow
FEW, MANY = 6, 12
"""Numbers of photos in the short and in the long part; each photo gives two rows."""
LONG_KILLS = {"rows": 20, "rows and maps": 30}
"""Number of kills in the long part."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A function that returns an undisturbed run, given its options and number of photos."""
    made = {}

    def run(kept, photos):
        if (kept, photos) not in made:
            folder = tmp_path_factory.mktemp("undisturbed")
            made[kept, photos] = evaluate_once(folder, *OPTIONS[kept], photos=photos, masks=256)
        return made[kept, photos]

    return run


class Killed:
    """A folder that `evaluate` fills, and in which it is killed."""

    def __init__(self, run, folder, seed):
        self.run, self.folder, self.rng = run, folder, random.Random(seed)
        self.out, self.all = folder / "out", len(rows_of(run.whole))

    def kill(self):
        """Start the command and kill it when there are some more files of rows; return how far it had come."""
        before, expected = rows_of(self.out), rows_of(self.run.whole)
        share, more = self.rng.random(), self.rng.randint(0, 2)
        files = set(self.files())
        command = Command((*self.run.command, "--out", self.out), self.folder / "output", write_every_row)
        delay = self.rng.random() * (1.5 if share < 0.15 else 0.08)
        kill = kill_when(command, lambda: share < 0.15 or len(set(self.files()) - files) > more, self.out, delay=delay)
        now = rows_of(self.out)  # raises an error if a visible file is not whole
        assert before.items() <= now.items() <= expected.items(), "rows are lost or changed"
        if "--maps" in self.run.command:
            expect_maps(self.run, self.out, now)
        if not kill.killed:
            return "ended"
        return "partly" if 0 < len(now) < self.all else "before or after"

    def files(self):
        return [path for path in files_below(self.out / "rows") if not path.name.startswith(".")]

    def finish(self):
        """Run the command once more, undisturbed, and compare its results with those of a run that was never killed."""
        command = Command((*self.run.command, "--out", self.out), self.folder / "output", write_every_row)
        assert command.finish() == 0, command.output.read_text()
        expect_same_results(self.run, self.out)


def kill_often(run, folder, judge, *, kills, seed):
    """Kill the command `kills` times, in as many folders as needed; return how many kills found some rows stored."""
    counts, number = Counter(), 0
    while counts["partly"] + counts["before or after"] < kills:
        subfolder = folder / str(number)
        subfolder.mkdir()
        killed = Killed(run, subfolder, seed + number)
        while counts["partly"] + counts["before or after"] < kills and len(rows_of(killed.out)) < killed.all:
            moment = killed.kill()
            counts[moment] += 1
            if moment != "ended":
                judge(f"kills {moment}", Verdict("right"), Case(name=moment, make=killed.kill, expected="right"))
        killed.finish()
        number += 1
    return counts["partly"]


def test_a_run_killed_three_times_continues(runs, judge, tmp_path):
    assert kill_often(runs("rows and maps", FEW), tmp_path, judge, kills=3, seed=1) >= 1


@pytest.mark.hostile
@pytest.mark.parametrize("kept", OPTIONS)
def test_a_run_killed_many_times_continues(kept, runs, judge, tmp_path):
    assert kill_often(runs(kept, MANY), tmp_path, judge, kills=LONG_KILLS[kept], seed=100) >= 0.6 * LONG_KILLS[kept]


@pytest.mark.hostile
def test_killing_one_of_two_runs_does_not_affect_the_other(runs, judge, tmp_path):
    run, out = runs("rows and maps", MANY), tmp_path / "out"
    living, killed = (
        Command((*run.command, "--out", out), tmp_path / name, write_every_row) for name in ("living", "killed")
    )
    kill = kill_when(killed, lambda: len(files_below(out / "rows")) > 3, out)
    kind = "partly" if len(every_row(out)) > 0 else "before or after"
    if kill.killed:
        judge(f"kills {kind}", Verdict("right"))
    assert living.finish() == 0, living.output.read_text()
    assert Command((*run.command, "--out", out), tmp_path / "output").finish() == 0
    expect_same_results(run, out)
