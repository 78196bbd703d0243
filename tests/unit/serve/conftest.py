"""What is shared by tests of the app."""

import threading

import pytest
from serving import until


@pytest.fixture(autouse=True)
def nobody_left_at_work():
    """Jobs run on threads: none may outlive its test and disturb the next."""
    yield
    assert until(lambda: not any("_work" in thread.name for thread in threading.enumerate()), seconds=60)
