"""What is shared by tests of the app."""

import threading

import PIL.Image
import pytest
from serving import until
from skimage import data


@pytest.fixture(autouse=True)
def nobody_left_at_work():
    """Jobs run on threads: none may outlive its test and disturb the next."""
    yield
    assert until(lambda: not any("_work" in thread.name for thread in threading.enumerate()), seconds=60)


@pytest.fixture
def upload(tmp_path):
    path = tmp_path / "uploads" / "cat.png"
    path.parent.mkdir()
    PIL.Image.fromarray(data.chelsea()[::4, ::4]).save(path)
    return path
