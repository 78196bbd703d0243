"""Many images → explanations in a folder: for each a panel, its maps and its provenance.

The provenance is written last, so that an image whose files are there and whole is done, and a run can go on where it
broke off. What is damaged is made again, what fails is told, and the rest still done.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, final

from matplotlib.figure import Figure

from repeat_xai.data.images import Protocol, load_image
from repeat_xai.engine.scheduler import Answer
from repeat_xai.errors import ConfigurationError, OutputError, RepeatError
from repeat_xai.files.atomic import opened, remove, sweep, writing
from repeat_xai.methods.method_names import Method
from repeat_xai.methods.provenance import request
from repeat_xai.output.figures import comparison, panel, save_figure
from repeat_xai.output.image_results import SIGNATURE, Files, Place, is_own, png_of
from repeat_xai.types import Encoder, Explanation, Image
from repeat_xai.version import __version__

__all__ = ["Files", "Gallery", "Outcome", "Printed", "compare", "draw", "expect_ours", "is_there", "print_out"]

DPI = 150
PRINTED = 300
"""Dots an inch of the pictures in a PDF."""
LONGEST = 200
"""Bytes of an image's name that its results keep, so that there is room for an ending."""


class Printed(NamedTuple):
    """A figure on disk: to look at, to print, and what it is."""

    picture: Path
    page: Path
    title: str


class Outcome(NamedTuple):
    """What became of one image: its provenance and where it is, or why there is none."""

    path: Path
    files: Files | None = None
    record: Mapping[str, Any] | None = None
    before: bool = False
    """It was done already."""
    error: RepeatError | None = None
    flaw: str = ""
    """Which file of an earlier run was damaged or missing, so that the image was explained again."""


@final
@dataclass(frozen=True, kw_only=True)
class Gallery:
    """A folder of explanations, all made in one way."""

    folder: Path
    encoder: Encoder
    method: Method
    protocol: Protocol = "encoder"
    level: float = 0.95
    """Share of votes that makes a verdict."""
    seed: int

    def fill(self, paths: Sequence[Path]) -> Iterator[Outcome]:
        """Explain each image, and tell of it when it is done."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be written to ({error.strerror}); choose another") from error
        sweep(self.folder)
        begun: deque[tuple[Path, str]] = deque()
        settled: deque[Outcome] = deque()
        for answer in self.method.answers(self.encoder, self._images(paths, begun, settled), seed=self.seed):
            yield from _drained(settled)
            yield self._hung(*begun.popleft(), answer)
        yield from _drained(settled)

    def _images(
        self, paths: Sequence[Path], begun: deque[tuple[Path, str]], settled: deque[Outcome]
    ) -> Iterator[Image]:
        """The images yet to be explained; the others are settled."""
        for path in paths:
            try:
                image = load_image(path, self.encoder, protocol=self.protocol)
                place = self._place(path, image.photo.digest)
            except ConfigurationError:
                raise
            except RepeatError as error:
                settled.append(Outcome(path, error=error))
                continue
            wanted = request(self.method, self.encoder, image, seed=self.seed) | {"level": self.level}
            flaw, record = place.flaw(image.photo.digest), place.record or {}
            if record and not flaw and all(record.get(k) == v for k, v in json.loads(json.dumps(wanted)).items()):
                settled.append(Outcome(path, place.files, record, before=True))
            else:
                begun.append((path, flaw))
                yield image

    def _hung(self, path: Path, flaw: str, answer: Answer[Explanation]) -> Outcome:
        """One image's results on disk."""
        if isinstance(answer.result, RepeatError):
            return Outcome(path, error=answer.result)
        record = {**answer.result.provenance, "level": self.level}
        try:
            files = self._place(path, answer.image.photo.digest).files
            _hang(answer.result, files, record)
        except RepeatError as error:
            return Outcome(path, error=error)
        return Outcome(path, files, record, flaw=flaw)

    def _place(self, path: Path, digest: str) -> Place:
        """Where this image's results go: under its own name, numbered where that is another's."""
        stem = path.stem.encode(errors="surrogateescape")[:LONGEST].decode(errors="ignore")
        number = 1
        while not (place := Place(Files.of(self.folder, stem if number == 1 else f"{stem}-{number}"))).is_for(digest):
            number += 1
        return place


def _drained(settled: deque[Outcome]) -> Iterator[Outcome]:
    while settled:
        yield settled.popleft()


def _hang(explanation: Explanation, files: Files, record: Mapping[str, Any]) -> None:
    """Write the maps, the panel and, last, the provenance; an older one goes first, so that it never lies."""
    level = record["level"]
    remove(files.provenance)
    explanation.save(files.maps)
    draw(panel(explanation, level=level), files.panel, key=explanation.photo.digest)
    with writing(files.provenance) as draft:
        draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def compare(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """One image as several galleries have it, drawn side by side into the folder."""
    files = [outcome.files for outcome in outcomes if outcome.files is not None]
    picture = folder / f"{files[0].maps.stem}.comparison.png"
    expect_ours(picture)
    draw(comparison([each.explanation() for each in files]), picture)
    return picture


def expect_ours(picture: Path) -> None:
    """Refuse to write over a picture of the user's own."""
    if is_own(picture):
        raise OutputError(f"{picture}: is a picture of your own and is not written over; choose another --out")


def draw(figure: Figure, path: Path, *, key: str = "") -> None:
    """A picture that says whose it is, and what it is of."""
    about = {"Software": f"{SIGNATURE} {__version__}"} | ({"Source": key} if key else {})
    save_figure(figure, path, dpi=DPI, metadata=about)


def print_out(figure: Figure, picture: Path, *, title: str, key: str = "") -> Printed:
    """A PNG to look at, and beside it a PDF to print; a picture of the user's own is left alone."""
    if is_own(picture):
        raise OutputError(f"{picture}: is not of this program and is not written over; choose another folder")
    printed = Printed(picture, picture.with_suffix(".pdf"), title)
    about = {"Title": title, "Creator": f"{SIGNATURE} {__version__}"}
    save_figure(figure, printed.page, dpi=PRINTED, metadata=about)
    draw(figure, picture, key=key)
    return printed


def is_there(printed: Printed, key: str) -> bool:
    """Whether both files are there and whole, and are of what this key says."""
    found = png_of(printed.picture)
    try:
        with opened(printed.page) as file:
            page = file.read()
    except OSError:
        return False
    return found.whole and found.texts.get("Source") == key and page.startswith(b"%PDF") and page.endswith(b"%%EOF\n")
