"""Results damaged at random, by a seed: they are made again, and whatever else happens is said in a line."""

import random

import pytest
from hostile.outputs import expect_same, made, quick_panels
from hostile.verdicts import Case

FILES = ("0000.json", "0000.npz", "0000.png", "index.html")
ROUNDS = 200


def flip(content, chance):
    """Flip up to eight bits anywhere."""
    for _ in range(chance.randint(1, 8)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def cut(content, chance):
    del content[chance.randrange(len(content)) :]


def zero(content, chance):
    """Write zeros over a stretch, as a bad sector does."""
    start, length = chance.randrange(len(content)), chance.randint(1, 4096)
    content[start : start + length] = bytes(len(content[start : start + length]))


def leave_out(content, chance):
    start = chance.randrange(len(content))
    del content[start : start + chance.randint(1, 512)]


def repeat(content, chance):
    start = chance.randrange(len(content))
    content[start:start] = content[start : start + chance.randint(1, 512)]


def insert(content, chance):
    content[chance.randrange(len(content)) : 0] = chance.randbytes(chance.randint(1, 64))


DAMAGES = (flip, flip, cut, zero, leave_out, repeat, insert)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with quick_panels():
        options = ("--estimator", "exact", "--masks", 20, "--repeats", 2)
        yield made(tmp_path_factory.mktemp("explain"), "explain", *options)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(4))
def test_random_damage_is_made_again(part, run, judge, tmp_path):
    for number in range(ROUNDS // 4):
        chance = random.Random(1000 * part + number)
        out = run.copy(tmp_path / str(number))
        for name in chance.sample(FILES, chance.choice((1, 1, 1, 2))):
            content = bytearray((out / name).read_bytes())
            chance.choice(DAMAGES)(content, chance)
            (out / name).write_bytes(content)
        verdict = run.into(out)
        if verdict.kind == "refused":  # what no longer says that it is ours is not written over
            judge("random damage", verdict, Case(name=str(number), make=flip, says="index.html: is a page of your own"))
        else:
            judge("random damage", verdict, Case(name=str(number), make=flip, expected="right"))
            expect_same(out, run.whole)
