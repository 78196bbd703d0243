"""The folder of a running app, and the folders that killed apps have left behind."""

import os
import subprocess
import sys
import tempfile

import pytest

from repeat_xai.app import app_folder as module
from repeat_xai.app.app_folder import FOLDER_PREFIX, LOCK_FILE, temporary_app_folder

CODE = f"""
import os, runpy, sys
# Only this file is run, because importing the package would load the rest of the app.
temporary_app_folder = runpy.run_path({module.__file__!r})["temporary_app_folder"]
with temporary_app_folder() as folder:
    print(folder, flush=True)
    %s
"""


@pytest.fixture
def parent(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_is_private_has_a_random_name_and_is_removed_at_the_end(parent):
    with temporary_app_folder() as folder, temporary_app_folder() as another:
        assert folder.parent == parent
        assert folder.stat().st_mode & 0o077 == 0
        assert len(folder.name) >= len(FOLDER_PREFIX) + 32
        assert folder != another
        (folder / "photo").mkdir()
    assert list(parent.iterdir()) == []


def test_the_folder_of_a_killed_app_is_removed_and_that_of_a_running_app_stays(parent):
    environment = os.environ | {"TMPDIR": str(parent)}
    killed = subprocess.run(
        [sys.executable, "-c", CODE % "os.kill(os.getpid(), 9)"], env=environment, capture_output=True, text=True
    )
    abandoned = parent / killed.stdout.strip()
    (abandoned / "uploads").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", CODE % "sys.stdin.read()"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        in_use = parent / running.stdout.readline().strip()
        assert not abandoned.exists()
        with temporary_app_folder():
            assert in_use.is_dir()
        running.stdin.close()
    assert not in_use.exists()


def test_only_folders_of_apps_are_removed(parent):
    (parent / f"{FOLDER_PREFIX}mine").mkdir()
    (parent / f"{FOLDER_PREFIX}file").touch()
    os.mkfifo(parent / f"{FOLDER_PREFIX}pipe")
    (parent / f"{FOLDER_PREFIX}link").symlink_to(parent)
    (parent / f"{FOLDER_PREFIX}linked").mkdir()
    (parent / f"{FOLDER_PREFIX}linked" / LOCK_FILE).symlink_to(parent / f"{FOLDER_PREFIX}file")
    before = sorted(parent.iterdir())
    with temporary_app_folder():
        pass
    assert sorted(parent.iterdir()) == before
