"""What lies where one image's results are to be: results of ours, whole or damaged, or what is somebody else's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, final

import PIL.Image

from repeat_xai.data.image_files import HEAD_BYTES, SIGNATURE
from repeat_xai.errors import OutputError
from repeat_xai.files.reading import Png, expect_regular, open_regular, read_json, read_png
from repeat_xai.methods.once import Once
from repeat_xai.types import Explanation

LARGEST = 2**26
"""Bytes of the largest picture that is taken for ours."""
LONGEST_RUN = 1e9
"""Seconds: no image takes thirty years."""


class Files(NamedTuple):
    """Where one image's results are."""

    panel: Path
    maps: Path
    provenance: Path

    @staticmethod
    def of(folder: Path, name: str) -> Files:
        return Files(*(folder / f"{name}{suffix}" for suffix in (".png", ".npz", ".json")))

    def explanation(self) -> Explanation:
        """What the maps hold, when a run has made sure that they are there."""
        try:
            return Explanation.load(self.maps)
        except OutputError as error:
            raise OutputError(f"{error}, though it was there in this run; run the same command again") from error


@final
class Place:
    """What lies where one image's results are to be: results of ours, whole or damaged, or what is somebody else's."""

    def __init__(self, files: Files) -> None:
        for file in files:
            expect_regular(file)
        self.files = files

    @cached_property
    def record(self) -> dict[str, Any] | None:
        """The provenance; None where there is none that can be read."""
        try:
            return read_json(self.files.provenance)
        except (OSError, ValueError):
            return None

    @cached_property
    def maps(self) -> Explanation | None:
        """The explanation; None where there is none that is valid."""
        try:
            return Explanation.load(self.files.maps)
        except OutputError:
            return None

    @cached_property
    def source(self) -> str | None:
        """The digest of the image that the panel says it is of."""
        return png_of(self.files.panel, most=HEAD_BYTES).texts.get("Source")

    def is_for(self, digest: str) -> bool:
        """Whether results of the image with this digest may be written here: nothing else is lost by that.

        Each of our files says which image it is of. Where one of them is damaged, the others decide.
        """
        if not any(_holds_anything(file) for file in self.files):
            return True
        said = [_digest(self.record), self.source]
        if said[0] != said[1] or None in said:
            said.append(None if self.maps is None else self.maps.photo.digest)
        images = [image for image in said if image is not None]
        return 2 * images.count(digest) > len(images) and not is_own(self.files.panel)

    def flaw(self, digest: str) -> str:
        """Which of the files is damaged or missing; nothing where all are whole, or none is there."""
        if not any(file.exists() for file in self.files):
            return ""
        record, maps, (panel, npz, provenance) = self.record, self.maps, self.files
        if record is None or (maps is not None and not _agree(record, maps)):
            bad = provenance
        elif maps is None or (maps.uncertainty.isnan().any() and maps.provenance["method"]["name"] != Once.__name__):
            bad = npz
        elif not png_of(panel).whole or self.source != digest:
            bad = panel
        else:
            return ""
        return f"{bad}: {'damaged' if bad.exists() else 'missing'}"


def png_of(path: Path, *, most: int = LARGEST) -> Png:
    """What the first so many bytes of a picture say of it: nothing where there is none."""
    try:
        return read_png(path, max_bytes=most)
    except OSError:
        return Png()


def is_own(path: Path) -> bool:
    """Whether a picture is the user's own. A damaged one of ours is not, and neither is what is no picture at all."""
    if not _holds_anything(path) or png_of(path, most=HEAD_BYTES).texts.get("Software", "").startswith(SIGNATURE):
        return False
    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PIL.Image.open(file).close()
    except PIL.UnidentifiedImageError:
        return False
    except Exception:  # a picture too large to be opened, for example
        return True
    return True


def _holds_anything(path: Path) -> bool:
    """Whether a file is there that is not empty."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _digest(record: Mapping[str, Any] | None) -> str | None:
    """Which image a provenance is of."""
    image = {} if record is None else record.get("image")
    digest = image.get("sha256") if isinstance(image, dict) else None
    return digest if isinstance(digest, str) else None


def _agree(record: Mapping[str, Any], maps: Explanation) -> bool:
    """Whether a provenance is the one that was written for these maps, with what a user is told of it."""
    calls, seconds, level = (record.get(name) for name in ("encoder_calls", "seconds", "level"))
    told = isinstance(calls, int) and isinstance(seconds, int | float) and calls >= 0 and 0 <= seconds < LONGEST_RUN
    same = _timeless(record) == _timeless({**maps.provenance, "level": level})
    return told and same and _digest(record) == maps.photo.digest


def _timeless(record: Mapping[str, Any]) -> str:
    """A provenance as text, without times: clocks may be set, and two runs at once may write the same maps."""
    ran = record.get("ran")
    ran = {**ran, "prepared_seconds": None} if isinstance(ran, Mapping) else ran
    return json.dumps({**record, "ran": ran, "seconds": None, "finished": None}, sort_keys=True)
