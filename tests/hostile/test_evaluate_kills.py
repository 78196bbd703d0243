"""`evaluate`, killed anywhere: no row and no map is lost, doubled or changed, and nothing is left over in the end."""

import random
from collections import Counter

import pytest
from hostile.evaluations import evaluated, every_row, expect_like, expect_maps, rows_of
from hostile.kills import Command, files_below, kill_when, write_every_row
from hostile.verdicts import Case, Verdict

OPTIONS = {"rows": (), "rows and maps": ("--maps",)}
FEW, MANY = 6, 12
"""Photos of the short part and of the long one; each gives two rows."""
LONG = {"rows": 20, "rows and maps": 30}
"""Kills in the long part."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What an undisturbed run leaves, by its options and number of photos."""
    made = {}

    def run(kept, photos):
        if (kept, photos) not in made:
            folder = tmp_path_factory.mktemp("undisturbed")
            made[kept, photos] = evaluated(folder, *OPTIONS[kept], photos=photos, masks=256)
        return made[kept, photos]

    return run


class Killed:
    """A folder that `evaluate` is to fill, and is killed while it does."""

    def __init__(self, run, folder, seed):
        self.run, self.folder, self.chance = run, folder, random.Random(seed)
        self.out, self.all = folder / "out", len(rows_of(run.whole))

    def kill(self):
        """Begin the command and kill it when there are some more files of rows. Return how far it had come."""
        before, expected = rows_of(self.out), rows_of(self.run.whole)
        share, more = self.chance.random(), self.chance.randint(0, 2)
        files = set(self.files())
        command = Command((*self.run.command, "--out", self.out), self.folder / "said", write_every_row)
        delay = self.chance.random() * (1.5 if share < 0.15 else 0.08)
        kill = kill_when(command, lambda: share < 0.15 or len(set(self.files()) - files) > more, self.out, delay=delay)
        now = rows_of(self.out)  # every file that can be seen is whole, or this is refused
        assert before.items() <= now.items() <= expected.items(), "rows are lost or changed"
        if "--maps" in self.run.command:
            expect_maps(self.run, self.out, now)
        if not kill.killed:
            return "ended"
        return "partly" if 0 < len(now) < self.all else "before or after"

    def files(self):
        return [path for path in files_below(self.out / "rows") if not path.name.startswith(".")]

    def finish(self):
        """Run the command once more, undisturbed; what it leaves is what a run leaves that was never killed."""
        command = Command((*self.run.command, "--out", self.out), self.folder / "said", write_every_row)
        assert command.finish() == 0, command.said.read_text()
        expect_like(self.run, self.out)


def kill_often(run, folder, judge, *, kills, seed):
    """Kill the command so many times, in as many folders as that takes; how many kills found rows partly written."""
    counts, number = Counter(), 0
    while counts["partly"] + counts["before or after"] < kills:
        here = folder / str(number)
        here.mkdir()
        killed = Killed(run, here, seed + number)
        while counts["partly"] + counts["before or after"] < kills and len(rows_of(killed.out)) < killed.all:
            came = killed.kill()
            counts[came] += 1
            if came != "ended":
                judge(f"kills {came}", Verdict("right"), Case(name=came, make=killed.kill, expected="right"))
        killed.finish()
        number += 1
    return counts["partly"]


def test_killed_three_times_it_goes_on(runs, judge, tmp_path):
    assert kill_often(runs("rows and maps", FEW), tmp_path, judge, kills=3, seed=1) >= 1


@pytest.mark.hostile
@pytest.mark.parametrize("kept", OPTIONS)
def test_killed_many_times_it_goes_on(kept, runs, judge, tmp_path):
    assert kill_often(runs(kept, MANY), tmp_path, judge, kills=LONG[kept], seed=100) >= 0.6 * LONG[kept]


@pytest.mark.hostile
def test_a_run_killed_beside_a_living_one_leaves_it_in_peace(runs, judge, tmp_path):
    run, out = runs("rows and maps", MANY), tmp_path / "out"
    living, killed = (
        Command((*run.command, "--out", out), tmp_path / name, write_every_row) for name in ("living", "killed")
    )
    kill = kill_when(killed, lambda: len(files_below(out / "rows")) > 3, out)
    kind = "partly" if len(every_row(out)) > 0 else "before or after"
    if kill.killed:
        judge(f"kills {kind}", Verdict("right"))
    assert living.finish() == 0, living.said.read_text()
    assert Command((*run.command, "--out", out), tmp_path / "said").finish() == 0
    expect_like(run, out)
