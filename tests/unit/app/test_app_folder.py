"""The folder of a running app, and what killed apps have left."""

import os
import subprocess
import sys
import tempfile

import pytest

from repeat_xai.app import app_folder as module
from repeat_xai.app.app_folder import LOCK, PREFIX, home

CODE = f"""
import os, runpy, sys
home = runpy.run_path({module.__file__!r})["home"]  # the rest of the app would be loaded otherwise
with home() as folder:
    print(folder, flush=True)
    %s
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_its_owners_alone_under_a_name_nobody_guesses_and_goes_in_the_end(place):
    with home() as folder, home() as another:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o077 == 0
        assert len(folder.name) >= len(PREFIX) + 32
        assert folder != another
        (folder / "photo").mkdir()
    assert list(place.iterdir()) == []


def test_what_a_killed_app_has_left_goes_and_what_a_running_one_has_stays(place):
    environment = os.environ | {"TMPDIR": str(place)}
    killed = subprocess.run(
        [sys.executable, "-c", CODE % "os.kill(os.getpid(), 9)"], env=environment, capture_output=True, text=True
    )
    left = place / killed.stdout.strip()
    (left / "uploads").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", CODE % "sys.stdin.read()"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        kept = place / running.stdout.readline().strip()
        assert not left.exists()
        with home():
            assert kept.is_dir()
        running.stdin.close()
    assert not kept.exists()


def test_nothing_but_what_apps_have_left_goes(place):
    (place / f"{PREFIX}mine").mkdir()
    (place / f"{PREFIX}file").touch()
    os.mkfifo(place / f"{PREFIX}pipe")
    (place / f"{PREFIX}link").symlink_to(place)
    (place / f"{PREFIX}linked").mkdir()
    (place / f"{PREFIX}linked" / LOCK).symlink_to(place / f"{PREFIX}file")
    before = sorted(place.iterdir())
    with home():
        pass
    assert sorted(place.iterdir()) == before
