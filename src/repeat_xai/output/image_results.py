"""The three files of one image's results, which may be whole, damaged, missing, or somebody else's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, final

import PIL.Image

from repeat_xai.data.image_files import HEAD_BYTES, SIGNATURE
from repeat_xai.errors import OutputError
from repeat_xai.files.reading import Png, expect_regular, open_regular, read_json, read_png
from repeat_xai.types import Explanation

MAX_PICTURE_BYTES = 2**26
"""Size of the largest picture that may be ours."""
MAX_SECONDS = 1e9
"""More seconds than any image takes: thirty years."""


class ResultFiles(NamedTuple):
    """Where one image's results are."""

    panel: Path
    maps: Path
    provenance: Path

    @staticmethod
    def of(folder: Path, name: str) -> ResultFiles:
        """Return the files for an image's name in a folder."""
        return ResultFiles(*(folder / f"{name}{suffix}" for suffix in (".png", ".npz", ".json")))

    def explanation(self) -> Explanation:
        """Load the explanation from the maps, which this run has found or written."""
        try:
            return Explanation.load(self.maps)
        except OutputError as error:
            raise OutputError(f"{error}, though it was there in this run; run the same command again") from error


@final
class ExistingResults:
    """Whatever lies where one image's results are to be written."""

    def __init__(self, files: ResultFiles) -> None:
        for file in files:
            expect_regular(file)
        self.files = files

    @cached_property
    def record(self) -> dict[str, Any] | None:
        """The provenance, or None where there is none that can be read."""
        try:
            return read_json(self.files.provenance)
        except (OSError, ValueError):
            return None

    @cached_property
    def explanation(self) -> Explanation | None:
        """The explanation, or None where there is none that is valid."""
        try:
            return Explanation.load(self.files.maps)
        except OutputError:
            return None

    @property
    def settings_are_known(self) -> bool:
        """Whether the maps and the provenance are whole and belong together."""
        return self.record is not None and self.explanation is not None and _agree(self.record, self.explanation)

    @cached_property
    def panel_digest(self) -> str | None:
        """The digest of the image that the panel says it shows."""
        return read_picture(self.files.panel, max_bytes=HEAD_BYTES).texts.get("Source")

    def may_be_replaced_by(self, digest: str) -> bool:
        """Return whether results of the image with this digest may be written here without losing anything else.

        Each of the files says which image it belongs to. Where one of them is damaged, the others decide.
        """
        if not any(_has_content(file) for file in self.files):
            return True
        digests = [_digest(self.record), self.panel_digest]
        if digests[0] != digests[1] or None in digests:
            digests.append(None if self.explanation is None else self.explanation.photo.digest)
        known = [known for known in digests if known is not None]
        return 2 * known.count(digest) > len(known) and not is_users_own(self.files.panel)

    def flaw(self, digest: str) -> str:
        """Return which of the files is damaged or missing; an empty text where all are whole, or none is there."""
        if not any(file.exists() for file in self.files):
            return ""
        record, explanation, (panel, maps, provenance) = self.record, self.explanation, self.files
        if record is None or (explanation is not None and not _agree(record, explanation)):
            flawed = provenance
        elif explanation is None:
            flawed = maps
        elif not read_picture(panel).whole or self.panel_digest != digest:
            flawed = panel
        else:
            return ""
        return f"{flawed}: {'damaged' if flawed.exists() else 'missing'}"


def whole_results(folder: Path) -> ExistingResults | None:
    """Return results of an image in this folder whose maps and provenance are whole; None where there are none."""
    for file in folder.glob("*.json"):
        with suppress(OutputError):
            existing = ExistingResults(ResultFiles.of(folder, file.stem))
            if existing.settings_are_known:
                return existing
    return None


def read_picture(path: Path, *, max_bytes: int = MAX_PICTURE_BYTES) -> Png:
    """Return what the first bytes of a PNG say of it; nothing where there is no file."""
    try:
        return read_png(path, max_bytes=max_bytes)
    except OSError:
        return Png()


def is_users_own(path: Path) -> bool:
    """Return whether a picture is the user's own: neither one of ours, even damaged, nor something else."""
    made_by = read_picture(path, max_bytes=HEAD_BYTES).texts.get("Software", "")
    if not _has_content(path) or made_by.startswith(SIGNATURE):
        return False
    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PIL.Image.open(file).close()
    except PIL.UnidentifiedImageError:
        return False
    except Exception:  # for example a picture that is too large to be opened
        return True
    return True


def _has_content(path: Path) -> bool:
    """Return whether there is a file that is not empty."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _digest(record: Mapping[str, Any] | None) -> str | None:
    """Return the digest of the image that a provenance belongs to."""
    image = {} if record is None else record.get("image")
    digest = image.get("sha256") if isinstance(image, dict) else None
    return digest if isinstance(digest, str) else None


def _agree(record: Mapping[str, Any], explanation: Explanation) -> bool:
    """Return whether a provenance was written for this explanation, and has everything that a user is shown."""
    calls, seconds, level = (record.get(name) for name in ("encoder_calls", "seconds", "level"))
    sound = isinstance(calls, int) and isinstance(seconds, int | float) and calls >= 0 and 0 <= seconds < MAX_SECONDS
    same = _without_times(record) == _without_times({**explanation.provenance, "level": level})
    return sound and same and _digest(record) == explanation.photo.digest


def _without_times(record: Mapping[str, Any]) -> str:
    """Return a provenance as text without times: clocks may be set, and two runs may write the same maps at once."""
    ran = record.get("ran")
    ran = {**ran, "prepared_seconds": None} if isinstance(ran, Mapping) else ran
    return json.dumps({**record, "ran": ran, "seconds": None, "finished": None}, sort_keys=True)
