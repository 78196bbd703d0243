"""Small sound images of every format, changed at random by a seed: each is an image or is refused in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.verdicts import Verdict

TESTS = Path(__file__).parents[1]
PART = 2500


def expect_all_answered(first, count, judge, seconds):
    """Try so many images in a process of its own: decoders are C, and a crash would end this one."""
    paths = os.pathsep.join((str(TESTS), *filter(None, (os.environ.get("PYTHONPATH"),))))
    done = subprocess.run(
        [sys.executable, "-m", "hostile.image_mutations", str(first), str(count)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    numbers = done.stdout.splitlines()
    assert done.returncode == 0, f"image {numbers[-1:]} ended the process: {done.stderr}"
    found = json.loads(numbers[-1])
    for kind, number in found["counts"].items():
        judge("image fuzzer", Verdict(kind), count=number)
    assert not found["faults"], found["faults"]
    assert sum(found["counts"].values()) == count
    assert min(found["counts"]["right"], found["counts"]["refused"]) > count / 20, "changes are too weak or too strong"
    assert done.stderr == "", "libraries write nothing of their own"


def test_images_changed_at_random(judge):
    expect_all_answered(0, 600, judge, seconds=60)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(8))
def test_many_images_changed_at_random(part, judge):
    expect_all_answered(1000 + PART * part, PART, judge, seconds=120)
