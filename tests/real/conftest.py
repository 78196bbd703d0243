"""Real weights and images lie beside the repository, or where the variable REPEAT_XAI_SHARED says."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("REPEAT_XAI_SHARED", Path(__file__).parents[3] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real weights and data, or skip the test where there is none."""
    if not (SHARED / "weights").is_dir():
        pytest.skip(f"no real weights and data in {SHARED}; set REPEAT_XAI_SHARED")
    return SHARED
