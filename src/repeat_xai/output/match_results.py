"""A folder with the results of matching two images: three pictures, the match itself and a record of how it was made.

The record, `match.json`, is written last: a folder that holds it, and whose other files are whole, is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from repeat_xai.data.images import ImageProtocol, load_image
from repeat_xai.errors import OutputError
from repeat_xai.files.atomic import remove, remove_old_drafts, writing
from repeat_xai.files.reading import expect_regular, read_json
from repeat_xai.methods.match import expect_matching, match_images, seeds_of
from repeat_xai.methods.provenance import request
from repeat_xai.methods.repeat import Repeat
from repeat_xai.output.figures import match_figure, panel
from repeat_xai.output.image_results import read_picture
from repeat_xai.output.results_folder import draw, expect_ours, expect_same_settings
from repeat_xai.types import Encoder, Match


class MatchFiles(NamedTuple):
    """Where the results of a match are."""

    lines: Path
    """Both photos with lines between the parts that go together."""
    panel_a: Path
    """Why A is similar to B."""
    panel_b: Path
    """Why B is similar to A."""
    match: Path
    """The match, which `Match.load` reads."""
    record: Path
    """How it was made, and which matches are certain, as JSON."""

    @staticmethod
    def of(folder: Path) -> MatchFiles:
        """Return the files in a folder."""
        return MatchFiles(*(folder / name for name in ("match.png", "a.png", "b.png", "match.npz", "match.json")))

    @property
    def pictures(self) -> tuple[Path, Path, Path]:
        """The three pictures."""
        return self.lines, self.panel_a, self.panel_b


class MatchOutcome(NamedTuple):
    """The files of a match, and what its record says."""

    files: MatchFiles
    record: Mapping[str, Any]
    already_done: bool
    """Whether the files are those of an earlier run."""


@final
@dataclass(frozen=True, kw_only=True)
class MatchFolder:
    """A folder for the match of two images."""

    folder: Path
    encoder: Encoder
    method: Repeat
    protocol: ImageProtocol = "encoder"
    level: float = 0.95
    seed: int

    def fill(self, a: Path, b: Path) -> MatchOutcome:
        """Match two images and write the results, unless they are there already and whole."""
        expect_matching(self.method)
        files = MatchFiles.of(self.folder)
        for file in files:
            expect_regular(file)
        for picture in files.pictures:
            expect_ours(picture)
        images = [load_image(path, self.encoder, protocol=self.protocol) for path in (a, b)]
        seeds = seeds_of(*images, seed=self.seed)
        requests = [
            request(self.method, self.encoder, image, seed=seed) for image, seed in zip(images, seeds, strict=True)
        ]
        wanted = {"a": requests[0], "b": requests[1], "level": self.level}
        record = _existing_record(files)
        if record is not None:
            expect_same_settings(record, json.loads(json.dumps(wanted)), files.record)
            if _are_whole(files):
                return MatchOutcome(files, record, already_done=True)
        remove_old_drafts(self.folder)
        match = match_images(self.encoder, *images, method=self.method, seed=self.seed)
        return MatchOutcome(files, self._write(match, files), already_done=False)

    def _write(self, match: Match, files: MatchFiles) -> dict[str, Any]:
        """Write the pictures, the match and, last, the record, which is returned; an older record is removed first."""
        record = match_record(match, level=self.level)
        remove(files.record)
        match.save(files.match)
        draw(match_figure(match, level=self.level), files.lines)
        # A verdict is a share of votes, which may be 1; a level of matches is below 1. The same number serves both.
        draw(panel(match.a, level=self.level), files.panel_a, key=match.a.photo.digest)
        draw(panel(match.b, level=self.level), files.panel_b, key=match.b.photo.digest)
        with writing(files.record) as draft:
            draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        return record


def match_record(match: Match, *, level: float) -> dict[str, Any]:
    """Return how a match was made, and its certain matches, the most certain first, as plain JSON."""
    return {
        "a": dict(match.a.provenance),
        "b": dict(match.b.provenance),
        "level": level,
        "encoder_calls": match.encoder_calls,
        "seconds": round(match.a.provenance["seconds"] + match.b.provenance["seconds"], 3),
        "cells": match.cells,
        "pairs": match.effect.numel(),
        "typical_effect": match.typical_effect,
        "matches": [partner._asdict() for partner in match.partners(level)],
    }


def _existing_record(files: MatchFiles) -> dict[str, Any] | None:
    """Return the record of an earlier match; None where there is none or it is damaged; refuse a file of the user's."""
    if not files.record.exists():
        if files.match.exists() and _loaded(files.match) is None and files.match.stat().st_size:
            raise OutputError(f"{files.match}: is no match of this program; move it away or choose another folder")
        return None
    try:
        record = read_json(files.record, max_bytes=2**26)
    except (OSError, ValueError):
        return None
    if not {"a", "b", "level", "matches"} <= record.keys():
        raise OutputError(f"{files.record}: is no record of this program; move it away or choose another folder")
    return record


def _are_whole(files: MatchFiles) -> bool:
    """Return whether the pictures and the match are there and undamaged."""
    return _loaded(files.match) is not None and all(read_picture(picture).whole for picture in files.pictures)


def _loaded(path: Path) -> Match | None:
    """Return the match in a file, or None where there is none that is valid."""
    try:
        return Match.load(path)
    except OutputError:
        return None
