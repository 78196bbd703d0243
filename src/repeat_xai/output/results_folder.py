"""A folder of explanations: for each image a panel, its maps and its provenance.

The provenance is written last, so that an image whose three files are there and whole is done, and an interrupted run
can go on. Damaged results are made again, failures are reported, and the other images are still explained.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, final

from matplotlib.figure import Figure

from repeat_xai.data.image_files import SIGNATURE
from repeat_xai.data.images import ImageProtocol, load_image
from repeat_xai.errors import ConfigurationError, OutputError, RepeatError, shown
from repeat_xai.files.atomic import remove, remove_old_drafts, writing
from repeat_xai.files.reading import open_regular
from repeat_xai.methods.base import Method
from repeat_xai.methods.provenance import request
from repeat_xai.output.figures import comparison, panel, save_figure
from repeat_xai.output.image_results import ExistingResults, ResultFiles, is_users_own, read_picture
from repeat_xai.types import Encoder, Explanation, Task
from repeat_xai.version import __version__

SCREEN_DPI = 150
PRINT_DPI = 300
"""Dots per inch of the pictures in a PDF."""
MAX_NAME_BYTES = 200
"""Bytes of an image's name that its results keep, so that there is room for a suffix."""


class Printed(NamedTuple):
    """A figure on disk: a picture to look at, a page to print, and its title."""

    picture: Path
    page: Path
    title: str


class ImageOutcome(NamedTuple):
    """The result for one image: its provenance and its files, or the reason why there are none."""

    path: Path
    files: ResultFiles | None = None
    record: Mapping[str, Any] | None = None
    before: bool = False
    """Whether it was already done."""
    error: RepeatError | None = None
    flaw: str = ""
    """The file of an earlier run that was damaged or missing, so that the image was explained again."""


class _Wanted(NamedTuple):
    """The tag of a task: an image's path and what its earlier results lack, or its outcome if it is already known."""

    path: Path
    flaw: str = ""
    outcome: ImageOutcome | None = None


@final
@dataclass(frozen=True, kw_only=True)
class ResultsFolder:
    """A folder of explanations that are all made by one method."""

    folder: Path
    encoder: Encoder
    method: Method
    protocol: ImageProtocol = "encoder"
    level: float = 0.95
    """Share of votes that makes a verdict certain."""
    seed: int

    def fill(self, paths: Sequence[Path]) -> Iterator[ImageOutcome]:
        """Explain each image that is not done yet, and yield the outcome of every image, in order."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be written to ({error.strerror}); choose another") from error
        remove_old_drafts(self.folder)
        for answer in self.method.answers(self.encoder, map(self._task, paths), seed=self.seed):
            wanted, result = answer.task.tag, answer.result
            if isinstance(result, Explanation):
                yield self._written(wanted, result)
            elif result is not None:
                yield ImageOutcome(wanted.path, error=result)
            else:
                yield wanted.outcome

    def _task(self, path: Path) -> Task:
        """Return the task for one image: the image to explain, the error if it cannot be read, or what is done."""
        try:
            image = load_image(path, self.encoder, protocol=self.protocol)
            existing = self._existing(path, image.photo.digest)
        except ConfigurationError:
            raise
        except RepeatError as error:
            return Task(error, _Wanted(path))
        wanted = request(self.method, self.encoder, image, seed=self.seed) | {"level": self.level}
        flaw, record = existing.flaw(image.photo.digest), existing.record
        if record is not None and not flaw:
            expect_same_settings(record, json.loads(json.dumps(wanted)), existing.files.provenance)
            return Task(None, _Wanted(path, outcome=ImageOutcome(path, existing.files, record, before=True)))
        return Task(image, _Wanted(path, flaw))

    def _written(self, wanted: _Wanted, explanation: Explanation) -> ImageOutcome:
        """Write the results of one image."""
        record = {**explanation.provenance, "level": self.level}
        try:
            files = self._existing(wanted.path, explanation.photo.digest).files
            _write(explanation, files, record)
        except RepeatError as error:
            return ImageOutcome(wanted.path, error=error)
        return ImageOutcome(wanted.path, files, record, flaw=wanted.flaw)

    def _existing(self, path: Path, digest: str) -> ExistingResults:
        """Return where this image's results go: under its own name, numbered where that is another image's."""
        stem = path.stem.encode(errors="surrogateescape")[:MAX_NAME_BYTES].decode(errors="ignore")
        number = 1
        while True:
            files = ResultFiles.of(self.folder, stem if number == 1 else f"{stem}-{number}")
            existing = ExistingResults(files)
            if existing.may_be_replaced_by(digest):
                return existing
            number += 1


def _write(explanation: Explanation, files: ResultFiles, record: Mapping[str, Any]) -> None:
    """Write the maps, the panel and, last, the provenance; an older provenance is removed first."""
    remove(files.provenance)
    explanation.save(files.maps)
    draw(panel(explanation, level=record["level"]), files.panel, key=explanation.photo.digest)
    with writing(files.provenance) as draft:
        draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def expect_same_settings(record: Mapping[str, Any], wanted: Mapping[str, Any], file: Path) -> None:
    """Refuse to replace results of the same image that were made with other settings."""
    for name, value in wanted.items():
        earlier = record.get(name)
        if isinstance(value, Mapping) and isinstance(earlier, Mapping):
            expect_same_settings(earlier, value, file)
        elif earlier != value:
            raise ConfigurationError(
                f"{file}: holds results with {name} {shown(earlier)}, not {shown(value)}; choose another folder"
            )


def compare(outcomes: Sequence[ImageOutcome], folder: Path) -> Path:
    """Draw the results of several methods for one image side by side, and return the picture."""
    files = [outcome.files for outcome in outcomes if outcome.files is not None]
    picture = folder / f"{files[0].maps.stem}.comparison.png"
    expect_ours(picture)
    draw(comparison([each.explanation() for each in files]), picture)
    return picture


def expect_ours(picture: Path) -> None:
    """Refuse to replace a picture of the user's own."""
    if is_users_own(picture):
        raise OutputError(f"{picture}: is a picture of your own and is not written over; choose another folder")


def draw(figure: Figure, path: Path, *, key: str = "") -> None:
    """Write a figure as a PNG that names its maker and the digest of its image."""
    about = {"Software": f"{SIGNATURE} {__version__}"} | ({"Source": key} if key else {})
    save_figure(figure, path, dpi=SCREEN_DPI, metadata=about)


def print_out(figure: Figure, picture: Path, *, title: str, key: str = "") -> Printed:
    """Write a figure as a PNG to look at and beside it as a PDF to print; a picture of the user's own is kept."""
    if is_users_own(picture):
        raise OutputError(f"{picture}: is not of this program and is not written over; choose another folder")
    printed = Printed(picture, picture.with_suffix(".pdf"), title)
    about = {"Title": title, "Creator": f"{SIGNATURE} {__version__}"}
    save_figure(figure, printed.page, dpi=PRINT_DPI, metadata=about)
    draw(figure, picture, key=key)
    return printed


def is_there(printed: Printed, key: str) -> bool:
    """Return whether both files of a figure are there and whole, and were made from what this key stands for."""
    png = read_picture(printed.picture)
    try:
        with open_regular(printed.page) as file:
            page = file.read()
    except OSError:
        return False
    return png.whole and png.texts.get("Source") == key and page.startswith(b"%PDF") and page.endswith(b"%%EOF\n")
