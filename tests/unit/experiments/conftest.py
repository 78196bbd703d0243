"""Work for executors: pictures in a folder, and a worker that names their rows."""

import pytest
from small_work import PICTURES, work_in

from repeat_xai.experiments.worker import Worker


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def worker(place):
    return Worker(device="cpu", root=place)


@pytest.fixture(scope="module")
def work(place):
    return work_in(place, PICTURES)
