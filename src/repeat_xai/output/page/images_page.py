"""A folder of results → `index.html` in it, made of the files that lie there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from repeat_xai.errors import OutputError, RepeatError
from repeat_xai.files.atomic import writing
from repeat_xai.files.reading import open_regular
from repeat_xai.output.figures.captions import title
from repeat_xai.output.page.histogram_chart import Chart, chart
from repeat_xai.output.page.image_entry import Entry, names, record
from repeat_xai.output.page.page_template_data import Kind, Page, html
from repeat_xai.output.page.template import GENERATOR
from repeat_xai.output.results_folder import ImageOutcome
from repeat_xai.output.screening import Ranked, Score, statement

INDEX = "index.html"
FEW = 24
"""Up to so many images have large photos."""
LARGE, SMALL = 1024, 512
"""The longer side of a photo, in pixels."""
MOST = 500
"""So many images can be looked into on one page; the cards of the others lead to their panels."""


def expect_free(folder: Path) -> None:
    """Refuse a folder whose index is the user's own."""
    index = folder / INDEX
    try:
        with open_regular(index) as file:
            beginning = file.read(1000)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, OutputError):
        ours = False
    else:
        ours = not beginning or f'<meta name="generator" content="{GENERATOR} '.encode() in beginning
    if not ours:
        raise OutputError(f"{index}: is a page of your own and is not written over; choose another --out")


def explained(found: Sequence[Sequence[ImageOutcome]], folder: Path) -> Path | None:
    """The page of images explained by one method or several; None where there is nothing to show."""
    images = list(zip(*found, strict=True))
    entries = []
    for name, outcomes in zip(names([outcomes[0].path for outcomes in images]), images, strict=True):
        if files := [outcome.files for outcome in outcomes if outcome.files is not None]:
            beside = folder / f"{files[0].maps.stem}.comparison.png"
            several = len(files) > 1 and beside.is_file()
            entries.append(Entry(name=name, files=files, comparison=beside if several else None))
    failed = [outcome.error for outcomes in images for outcome in outcomes if outcome.error is not None]
    return _written(entries, folder, kind="explain", notes=_told(failed))


def screened(
    result: Ranked, reference: Sequence[Score], folder: Path, *, failed: Sequence[RepeatError] = ()
) -> Path | None:
    """The page of images ranked by uncertainty, with where all of them lie."""
    called = names([score.image for score in result.scores])
    rows = enumerate(zip(called, result.scores, result.unknown, result.below, strict=True), start=1)
    entries = [
        Entry(
            name=name,
            files=[score.files],
            uncertainty=score.uncertainty,
            unknown=unknown,
            facts=[f"rank {rank} of {len(called)}", f"uncertainty {score.uncertainty:#.4g}", *_shares(unknown, below)],
        )
        for rank, (name, score, unknown, below) in rows
    ]
    if not entries:
        return None
    known = [score.uncertainty for score in reference]
    scores = chart([score.uncertainty for score in result.scores], known, result.mixture)
    return _written(entries, folder, kind="screen", notes=_told(failed), said=statement(result), scores=scores)


def _written(
    entries: Sequence[Entry],
    folder: Path,
    *,
    kind: Kind,
    notes: Sequence[str],
    said: str = "",
    scores: Chart | None = None,
) -> Path | None:
    expect_free(folder)
    if not entries:
        return None
    few = len(entries) <= FEW
    cards = [
        entry.card(
            folder,
            view=f"#image-{number}" if number <= MOST else None,
            shown="uncertainty" if kind == "screen" else "importance",
        )
        for number, entry in enumerate(entries, start=1)
    ]
    more = [f"The first {MOST} images open here; the others lead to their panels."] if len(entries) > MOST else []
    page = Page(
        kind=kind,
        title=record(entries[0].files[0])["encoder"]["name"],
        lead=_lead(entries),
        statement=said,
        notes=[*notes, *more],
        cards=cards,
        contents=(entry.content(folder, longest=LARGE if few else SMALL) for entry in entries[:MOST]),
        chart=scores,
    )
    with writing(folder / INDEX) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(html(page))
    return folder / INDEX


def _lead(entries: Sequence[Entry]) -> str:
    """What was done, in a line."""
    fullest = max(entries, key=lambda entry: len(entry.files))
    methods = [title(files.explanation()) for files in fullest.files]
    made = record(fullest.files[0])
    count = "1 image" if len(entries) == 1 else f"{len(entries)} images"
    return " · ".join((count, ", ".join(methods), f"seed\u00a0{made['seed']}"))


def _shares(unknown: float | None, below: float | None) -> list[str]:
    said = [] if unknown is None else [f"probability unknown {unknown:.3f}"]
    return said if below is None else [*said, f"more uncertain than {below:.0%} of the reference"]


def _told(failed: Sequence[RepeatError]) -> list[str]:
    return [f"Could not be explained: {error}" for error in failed]
