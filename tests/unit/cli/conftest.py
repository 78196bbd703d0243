"""A photo to explain."""

import PIL.Image
import pytest
from skimage import data


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "cat.png"
    PIL.Image.fromarray(data.chelsea()).save(path)
    return path
