"""Hostile images by the format of their files, each with the answer that it should get."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np
from hostile.image_bytes import GREY, PIXELS, SIDE
from hostile.verdicts import Case

DAMAGED = "damaged or cut short"
NO_IMAGE = "not an image that can be read"
EITHER = f"{DAMAGED}|{NO_IMAGE}"
PIXELS_LIMIT = "million pixels"
TOO_SMALL = "too small"
SHOWN = {"picture": PIXELS, "grey": GREY, "white": np.full_like(PIXELS, 255)}
Content = bytes | Callable[[], bytes]


@dataclass(frozen=True, kw_only=True)
class Picture(Case):
    """An image, and the picture that it should show if it is accepted."""

    shows: Literal["picture", "grey", "white", "anything"] = "picture"
    within: int = 0
    """Levels of 255 by which pixels may differ, because compression loses some."""
    suffix: str = ".png"
    """Suffix of the file, by which the command finds it in a folder."""


_numbers = count()


def _file(name: str, content: Content, expected: Literal["right", "refused"], **fields) -> Picture:
    suffix = fields.get("suffix", ".png")
    number = next(_numbers)

    def make(folder):
        path = folder / f"{number:03}{suffix}"
        path.write_bytes(content if isinstance(content, bytes) else content())
        return path

    return Picture(name=name, make=make, expected=expected, **fields)


def refused(message: str, kind: str, **contents: Content) -> list[Picture]:
    """Return cases of files that are refused with this message."""
    return [
        _file(f"{kind}: {name.replace('_', ' ')}", made, "refused", message=message) for name, made in contents.items()
    ]


def right(shows: str, kind: str, *, within: int = 0, **contents: Content) -> list[Picture]:
    """Return cases of files that are accepted and show this picture."""
    return [
        _file(f"{kind}: {name.replace('_', ' ')}", made, "right", shows=shows, within=within)
        for name, made in contents.items()
    ]


def expect_shown(image, case: Picture) -> None:
    """Check that an image is an `Image` and shows what the case expects."""
    pixels = image.pixels.numpy()
    assert pixels.shape == (3, SIDE, SIDE)
    assert pixels.dtype == np.float32
    assert np.isfinite(pixels).all()
    assert pixels.min() >= 0
    assert pixels.max() <= 1
    assert image.photo.picture.dtype == np.uint8
    assert image.photo.picture.ndim == 3
    if case.shows != "anything":
        away = np.abs(pixels.transpose(1, 2, 0) * 255 - SHOWN[case.shows].astype(float)).max()
        assert away <= case.within + 1e-4, away
