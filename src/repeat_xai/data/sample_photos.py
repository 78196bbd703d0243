"""Photos that come with scikit-image's wheel: no network needed."""

from importlib.util import find_spec
from pathlib import Path

SAMPLES = ("chelsea.png", "coffee.png", "rocket.jpg", "astronaut.png")


def sample_path(name: str) -> Path:
    """Where one of them lies; scikit-image itself is not imported."""
    package = find_spec("skimage")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "data" / name
