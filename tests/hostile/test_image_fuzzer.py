"""Tests that randomly changed images of every format are loaded or refused in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.verdicts import Verdict

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
PART = 2500


def expect_all_answered(first, count, judge, seconds):
    """Try `count` images in another process, because the decoders are written in C and may crash."""
    paths = os.pathsep.join((str(TESTS), *filter(None, (os.environ.get("PYTHONPATH"),))))
    completed = subprocess.run(
        [sys.executable, "-m", "hostile.image_mutations", str(first), str(count)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    numbers = completed.stdout.splitlines()
    assert completed.returncode == 0, f"image {numbers[-1:]} ended the process: {completed.stderr}"
    summary = json.loads(numbers[-1])
    for kind, number in summary["counts"].items():
        judge("image fuzzer", Verdict(kind), count=number)
    assert not summary["faults"], summary["faults"]
    assert sum(summary["counts"].values()) == count
    assert min(summary["counts"]["right"], summary["counts"]["refused"]) > count / 20, (
        "changes are too weak or too strong"
    )
    assert completed.stderr == "", "libraries write nothing of their own"


def test_randomly_changed_images_are_images_or_refused(judge):
    expect_all_answered(0, 600, judge, seconds=60)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(8))
def test_many_randomly_changed_images_are_images_or_refused(part, judge):
    expect_all_answered(1000 + PART * part, PART, judge, seconds=120)
