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
from repeat_xai.methods.provenance import configuration, settings
from repeat_xai.output.figures import comparison, panel, save_figure
from repeat_xai.output.figures.captions import movement
from repeat_xai.output.image_results import ExistingResults, ResultFiles, is_users_own, read_picture, whole_results
from repeat_xai.types import Encoder, Explanation, Task
from repeat_xai.version import __version__

SCREEN_DPI = 150
PRINT_DPI = 300
"""Dots per inch of the pictures in a PDF."""
MAX_NAME_BYTES = 200
"""Bytes of an image's name that its results keep, so that there is room for a suffix."""


class FigureFiles(NamedTuple):
    """A figure on disk: a picture to look at, a page to print, and its title."""

    picture: Path
    page: Path
    title: str


class ImageOutcome(NamedTuple):
    """The result for one image: its provenance and its files, or the reason why there are none."""

    path: Path
    files: ResultFiles | None = None
    record: Mapping[str, Any] | None = None
    already_done: bool = False
    """Whether the files are those of an earlier run."""
    warning: str = ""
    """Why its maps say little about the photo, where it was explained in this run."""
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
    """A folder of explanations that are all made with the same settings."""

    folder: Path
    encoder: Encoder
    method: Method
    protocol: ImageProtocol = "encoder"
    level: float = 0.95
    """Share of votes that makes a verdict certain."""
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of all results in this folder, as they stand in a provenance."""
        plain = settings(self.method, self.encoder, seed=self.seed) | {"level": self.level}
        return dict(json.loads(json.dumps(plain)))

    def expect_same_settings(self) -> None:
        """Refuse a folder with results of other settings: its images and its page would no longer belong together."""
        if (earlier := whole_results(self.folder)) is not None and earlier.record is not None:
            expect_same_settings(earlier.record, self.settings, earlier.files.provenance)

    def fill(self, paths: Sequence[Path]) -> Iterator[ImageOutcome]:
        """Explain each image that is not done yet, and yield the outcome of every image, in order."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be written to ({error.strerror}); choose another") from error
        self.expect_same_settings()
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
        wanted = self.settings | {"image": json.loads(json.dumps(configuration(image)))}
        _expect_known_settings_equal(existing, wanted)
        flaw, record = existing.flaw(image.photo.digest), existing.record
        if record is None or flaw:
            return Task(image, _Wanted(path, flaw))
        return Task(None, _Wanted(path, outcome=ImageOutcome(path, existing.files, record, already_done=True)))

    def _written(self, wanted: _Wanted, explanation: Explanation) -> ImageOutcome:
        """Write the results of one image."""
        record = {**explanation.provenance, "level": self.level}
        try:
            files = self._existing(wanted.path, explanation.photo.digest).files
            _write(explanation, files, record)
        except RepeatError as error:
            return ImageOutcome(wanted.path, error=error)
        note = movement(explanation)
        return ImageOutcome(wanted.path, files, record, flaw=wanted.flaw, warning=str(note) if note.warning else "")

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


def _expect_known_settings_equal(existing: ExistingResults, wanted: Mapping[str, Any]) -> None:
    """Refuse to replace results made with other settings, by each of their files that says how they were made.

    Where one of the files agrees with what is wanted, the other one is damaged.
    """
    record, explanation, known = existing.record, existing.explanation, []
    if record is not None:
        known.append((record, existing.files.provenance))
    if explanation is not None:  # the provenance that lies beside the maps says everything but the level
        known.append(
            ({**explanation.provenance, "level": (record or {}).get("level", wanted["level"])}, existing.files.maps)
        )
    known = [(made, file) for made, file in known if wanted.keys() <= made.keys()]
    if known and not any(wanted.items() <= made.items() for made, _ in known):
        expect_same_settings(known[0][0], wanted, known[0][1])


def expect_same_settings(record: Mapping[str, Any], wanted: Mapping[str, Any], file: Path, *, within: str = "") -> None:
    """Refuse to replace or to add to results that were made with other settings, and name the first that differs."""
    for name, value in wanted.items():
        earlier = record.get(name)
        if isinstance(value, Mapping) and isinstance(earlier, Mapping):
            expect_same_settings(earlier, value, file, within=f"{within}{name}.")
        elif earlier != value:
            raise ConfigurationError(
                f"{file}: holds results with {within}{name} {shown(earlier)}, not {shown(value)}; choose another folder"
            )


def expect_same_methods(out: Path, folders: Sequence[ResultsFolder]) -> None:
    """Refuse a folder that holds results of other methods, whose comparisons and page would be replaced."""
    chosen = {folder.folder for folder in folders}
    for used in (out, *sorted(part for part in out.glob("*") if part.is_dir())):
        if used not in chosen and whole_results(used) is not None:
            raise ConfigurationError(f"{used}: holds results of another method; choose another folder")


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


def write_figure_files(figure: Figure, picture: Path, *, title: str, key: str = "") -> FigureFiles:
    """Write a figure as a PNG to look at and beside it as a PDF to print; a picture of the user's own is kept."""
    if is_users_own(picture):
        raise OutputError(f"{picture}: is not of this program and is not written over; choose another folder")
    files = FigureFiles(picture, picture.with_suffix(".pdf"), title)
    about = {"Title": title, "Creator": f"{SIGNATURE} {__version__}"}
    save_figure(figure, files.page, dpi=PRINT_DPI, metadata=about)
    draw(figure, picture, key=key)
    return files


def is_up_to_date(files: FigureFiles, key: str) -> bool:
    """Return whether both files of a figure are there and whole, and were made from what this key stands for."""
    png = read_picture(files.picture)
    try:
        with open_regular(files.page) as file:
            page = file.read()
    except OSError:
        return False
    return png.whole and png.texts.get("Source") == key and page.startswith(b"%PDF") and page.endswith(b"%%EOF\n")
