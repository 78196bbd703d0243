"""Tests that randomly damaged results are made again, or give one line."""

import random

import pytest
from hostile.outputs import expect_same, quick_panels, run_once
from hostile.verdicts import Case

FILES = ("0000.json", "0000.npz", "0000.png", "index.html")
ROUNDS = 200


def flip(content, rng):
    """Flip up to eight bits anywhere."""
    for _ in range(rng.randint(1, 8)):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def cut(content, rng):
    del content[rng.randrange(len(content)) :]


def zero(content, rng):
    """Write zeros over a stretch, as a bad sector does."""
    start, length = rng.randrange(len(content)), rng.randint(1, 4096)
    content[start : start + length] = bytes(len(content[start : start + length]))


def leave_out(content, rng):
    start = rng.randrange(len(content))
    del content[start : start + rng.randint(1, 512)]


def repeat(content, rng):
    start = rng.randrange(len(content))
    content[start:start] = content[start : start + rng.randint(1, 512)]


def insert(content, rng):
    content[rng.randrange(len(content)) : 0] = rng.randbytes(rng.randint(1, 64))


DAMAGES = (flip, flip, cut, zero, leave_out, repeat, insert)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with quick_panels():
        options = ("--estimator", "exact", "--masks", 20, "--repeats", 2)
        yield run_once(tmp_path_factory.mktemp("explain"), "explain", *options)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(4))
def test_randomly_damaged_results_are_made_again(part, run, judge, tmp_path):
    for number in range(ROUNDS // 4):
        rng = random.Random(1000 * part + number)
        out = run.copy(tmp_path / str(number))
        for name in rng.sample(FILES, rng.choice((1, 1, 1, 2))):
            content = bytearray((out / name).read_bytes())
            rng.choice(DAMAGES)(content, rng)
            (out / name).write_bytes(content)
        verdict = run.into(out)
        if verdict.kind == "refused":  # a page whose mark is damaged is not overwritten
            judge(
                "random damage", verdict, Case(name=str(number), make=flip, message="index.html: is a page of your own")
            )
        else:
            judge("random damage", verdict, Case(name=str(number), make=flip, expected="right"))
            expect_same(out, run.whole)
