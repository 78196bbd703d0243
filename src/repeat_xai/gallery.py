"""Many images → explanations in a folder: for each a panel, its maps and its provenance.

The provenance is written last, so that an image whose provenance is there is done, and a run can go on where it broke
off. What fails is told, and the rest still done.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, final
from zipfile import is_zipfile

import matplotlib
import PIL.Image
from matplotlib.figure import Figure

from repeat_xai.engine import Answer
from repeat_xai.errors import ConfigurationError, OutputError, RepeatError
from repeat_xai.files import writing
from repeat_xai.images import Protocol, load_image
from repeat_xai.methods import Method
from repeat_xai.plot import comparison, panel
from repeat_xai.provenance import request
from repeat_xai.types import Encoder, Explanation, Image
from repeat_xai.version import __version__

DPI = 150
PRINTED = 300
"""Dots an inch of the pictures in a PDF."""
LONGEST = 200
"""Bytes of an image's name that its results keep, so that there is room for an ending."""
SIGNATURE = "repeat-xai"
"""What a panel names as its software: a picture without it is somebody's own, and is never written over."""


class Files(NamedTuple):
    """Where one image's results are."""

    panel: Path
    maps: Path
    provenance: Path

    @staticmethod
    def of(folder: Path, name: str) -> Files:
        return Files(*(folder / f"{name}{suffix}" for suffix in (".png", ".npz", ".json")))


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
        begun: deque[Path] = deque()
        settled: deque[Outcome] = deque()
        for answer in self.method.answers(self.encoder, self._images(paths, begun, settled), seed=self.seed):
            yield from _drained(settled)
            yield self._hung(begun.popleft(), answer)
        yield from _drained(settled)

    def _images(self, paths: Sequence[Path], begun: deque[Path], settled: deque[Outcome]) -> Iterator[Image]:
        """The images yet to be explained; the others are settled."""
        for path in paths:
            try:
                image = load_image(path, self.encoder, protocol=self.protocol)
            except ConfigurationError:
                raise
            except RepeatError as error:
                settled.append(Outcome(path, error=error))
                continue
            files = self._place(path, image.photo.digest)
            wanted = request(self.method, self.encoder, image, seed=self.seed) | {"level": self.level}
            record = _read(files.provenance)
            if (
                record
                and is_zipfile(files.maps)
                and all(record.get(k) == v for k, v in json.loads(json.dumps(wanted)).items())
            ):
                settled.append(Outcome(path, files, record, before=True))
            else:
                begun.append(path)
                yield image

    def _hung(self, path: Path, answer: Answer[Explanation]) -> Outcome:
        """One image's results on disk."""
        if isinstance(answer.result, RepeatError):
            return Outcome(path, error=answer.result)
        files = self._place(path, answer.image.photo.digest)
        record = {**answer.result.provenance, "level": self.level}
        try:
            _hang(answer.result, files, record)
        except RepeatError as error:
            return Outcome(path, error=error)
        return Outcome(path, files, record)

    def _place(self, path: Path, digest: str) -> Files:
        """Where this image's results go: under its own name, numbered where that is another's."""
        stem = path.stem.encode(errors="surrogateescape")[:LONGEST].decode(errors="ignore")
        number = 1
        while not _free(files := Files.of(self.folder, stem if number == 1 else f"{stem}-{number}"), digest):
            number += 1
        return files


def _drained(settled: deque[Outcome]) -> Iterator[Outcome]:
    while settled:
        yield settled.popleft()


def _hang(explanation: Explanation, files: Files, record: Mapping[str, Any]) -> None:
    """Write the maps, the panel and, last, the provenance; an older one goes first, so that it never lies."""
    level = record["level"]
    files.provenance.unlink(missing_ok=True)
    explanation.save(files.maps)
    draw(panel(explanation, level=level), files.panel)
    with writing(files.provenance) as draft:
        draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def compare(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """One image as several galleries have it, drawn side by side into the folder."""
    maps = [outcome.files.maps for outcome in outcomes if outcome.files is not None]
    picture = folder / f"{maps[0].stem}.comparison.png"
    if picture.exists() and not _ours(picture):
        raise OutputError(f"{picture}: is a picture of your own and is not written over; choose another --out")
    draw(comparison([Explanation.load(path) for path in maps]), picture)
    return picture


def draw(figure: Figure, path: Path, *, key: str = "") -> None:
    """A picture that says whose it is, and what it is of."""
    about = {"Software": f"{SIGNATURE} {__version__}"} | ({"Source": key} if key else {})
    with writing(path) as draft:
        figure.savefig(draft, format="png", dpi=DPI, metadata=about)


def print_out(figure: Figure, picture: Path, *, title: str, key: str = "") -> Printed:
    """A PNG to look at, and beside it a PDF to print; a picture of the user's own is left alone."""
    if picture.exists() and not _ours(picture):
        raise OutputError(f"{picture}: is not of this program and is not written over; choose another folder")
    printed = Printed(picture, picture.with_suffix(".pdf"), title)
    about = {"Title": title, "Creator": f"{SIGNATURE} {__version__}", "CreationDate": None}
    with writing(printed.page) as draft, matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(draft, format="pdf", dpi=PRINTED, metadata=about)
    draw(figure, picture, key=key)
    return printed


def is_there(printed: Printed, key: str) -> bool:
    """Whether both files are, of what this key says."""
    try:
        with PIL.Image.open(printed.picture) as opened:
            return opened.info.get("Source") == key and printed.page.exists()
    except OSError:
        return False


def _free(files: Files, digest: str) -> bool:
    """Whether results of the image with this digest may be written here."""
    if files.provenance.exists():
        record = _read(files.provenance)
        return record is not None and record.get("image", {}).get("sha256") == digest
    return not files.panel.exists() or _ours(files.panel)


def _ours(picture: Path) -> bool:
    try:
        with PIL.Image.open(picture) as opened:
            return str(opened.info.get("Software")).startswith(SIGNATURE)
    except OSError:
        return False


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
