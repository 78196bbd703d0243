"""Fixtures that the tests of the app share."""

import threading

import PIL.Image
import pytest
from serving import until
from skimage import data


@pytest.fixture(autouse=True)
def no_job_left_running():
    """Jobs run on threads. None may outlive its test and disturb the next one."""
    yield
    assert until(lambda: not any("_work" in thread.name for thread in threading.enumerate()), seconds=60)


@pytest.fixture
def upload(tmp_path):
    path = tmp_path / "uploads" / "cat.png"
    path.parent.mkdir()
    PIL.Image.fromarray(data.chelsea()[::4, ::4]).save(path)
    return path
