"""The pages of `explain` and `screen`: `index.html` in a folder of results, made of the files that lie there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from repeat_xai.errors import OutputError, RepeatError
from repeat_xai.files.atomic import writing
from repeat_xai.files.reading import open_regular
from repeat_xai.output.figures.captions import title
from repeat_xai.output.page.file_names import file_name, image_names, without_folders
from repeat_xai.output.page.histogram_chart import Chart, score_chart
from repeat_xai.output.page.image_entry import ImageEntry, SavedExplanation, read_explanation
from repeat_xai.output.page.layers import LayerKind
from repeat_xai.output.page.page_parts import FailedImage, ImagesPage, PageKind, page_html
from repeat_xai.output.page.template import GENERATOR
from repeat_xai.output.results_folder import ImageOutcome
from repeat_xai.output.screening import Failure, Ranked, Score, statement

INDEX = "index.html"
MAX_LARGE_PHOTOS = 24
"""Pages of at most this many images have large photos."""
LARGE_SIDE, SMALL_SIDE = 1024, 512
"""The longer side of large and of small photos, in pixels."""
MAX_OPENABLE = 500
"""Images that can be opened on one page; the cards of any others lead to their panels."""
QUESTIONS: dict[PageKind, str] = {
    "explain": "Which pixels matter to {encoder}, and how sure is that?",
    "screen": "Which of these images may be unfamiliar to {encoder}?",
}


def expect_replaceable_page(folder: Path) -> None:
    """Raise an OutputError if the folder holds an `index.html` that this package did not write."""
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
        raise OutputError(f"{index}: is a page of your own and is not written over; choose another folder")


def write_explain_page(outcomes: Sequence[Sequence[ImageOutcome]], folder: Path) -> Path | None:
    """Write the page of images explained by one or several methods, and return its path.

    `outcomes` holds the outcomes of each method, all in the order of the images. If there is nothing to show, no page
    is written and None is returned.
    """
    images = list(zip(*outcomes, strict=True))
    entries = []
    for name, of_image in zip(image_names([of_image[0].path for of_image in images]), images, strict=True):
        if files := [outcome.files for outcome in of_image if outcome.files is not None]:
            picture = folder / f"{files[0].maps.stem}.comparison.png"
            compared = len(files) > 1 and picture.is_file()
            entries.append(ImageEntry(name=name, files=files, comparison=picture if compared else None))
    failed = [(outcome.path, outcome.error) for of_image in images for outcome in of_image if outcome.error is not None]
    return _write_page(entries, folder, kind="explain", failures=_failed_images(failed, folder))


def write_screen_page(
    ranked: Ranked, reference: Sequence[Score], folder: Path, *, failed: Sequence[Failure] = ()
) -> Path | None:
    """Write the page of images ranked by uncertainty, with the distribution of their scores, and return its path.

    If there is nothing to show, no page is written and None is returned.
    """
    names = image_names([score.image for score in ranked.scores])
    shares = map(_shares, ranked.in_higher_group, ranked.share_of_reference_below)
    lines = enumerate(zip(names, ranked.scores, ranked.in_higher_group, shares, strict=True), start=1)
    entries = [
        ImageEntry(
            name=name,
            files=[score.files],
            uncertainty=score.uncertainty,
            in_higher_group=in_higher_group,
            facts=[f"rank {rank} of {len(names)}", f"uncertainty {score.uncertainty:#.4g}", *facts],
        )
        for rank, (name, score, in_higher_group, facts) in lines
    ]
    if not entries:
        return None
    known = [score.uncertainty for score in reference]
    return _write_page(
        entries,
        folder,
        kind="screen",
        failures=_failed_images(failed, folder),
        statement=statement(ranked),
        chart=score_chart([score.uncertainty for score in ranked.scores], known, ranked.mixture),
    )


def _write_page(
    entries: Sequence[ImageEntry],
    folder: Path,
    *,
    kind: PageKind,
    failures: Sequence[FailedImage],
    statement: str = "",
    chart: Chart | None = None,
) -> Path | None:
    expect_replaceable_page(folder)
    if not entries:
        return None
    max_side = LARGE_SIDE if len(entries) <= MAX_LARGE_PHOTOS else SMALL_SIDE
    fullest = max(entries[:MAX_OPENABLE], key=lambda entry: len(entry.files))
    layer: LayerKind = "uncertainty" if kind == "screen" else "importance"
    cards, contents, example = [], [], []
    for number, entry in enumerate(entries, start=1):
        opens = number <= MAX_OPENABLE
        saved = [read_explanation(files) for files in (entry.files if opens else entry.files[:1])]
        anchor = f"#image-{number}" if opens else None
        cards.append(entry.card(saved[0], folder, anchor=anchor, layer=layer))
        if opens:
            contents.append(entry.content(saved, folder, max_side=max_side))
        if entry is fullest:
            example = saved
    encoder = file_name(example[0].record["encoder"]["name"])
    more = [f"The first {MAX_OPENABLE} images open on this page; the cards of the others lead to their panels."]
    page = ImagesPage(
        kind=kind,
        title=encoder,
        question=QUESTIONS[kind].format(encoder=encoder),
        lead=_lead(len(entries), example),
        level=example[0].record["level"],
        statement=statement,
        notes=more if len(entries) > MAX_OPENABLE else [],
        cards=cards,
        contents=contents,
        failures=failures,
        chart=chart,
    )
    with writing(folder / INDEX) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(page_html(page))
    return folder / INDEX


def _lead(images: int, example: Sequence[SavedExplanation]) -> str:
    """Return the number of images, the methods and the seed in one line."""
    methods = ", ".join(title(saved.explanation) for saved in example)
    count = "1 image" if images == 1 else f"{images} images"
    return " · ".join((count, methods, f"seed\u00a0{example[0].record['seed']}"))


def _shares(in_higher_group: float | None, share_below: float | None) -> list[str]:
    """Return what is known of a ranked image beside its score."""
    facts = [] if in_higher_group is None else [f"probability of the more uncertain group {in_higher_group:.3f}"]
    return facts if share_below is None else [*facts, f"more uncertain than {share_below:.0%} of the reference images"]


def _failed_images(failed: Sequence[tuple[Path, RepeatError]], folder: Path) -> list[FailedImage]:
    """Return the images that could not be explained, each reason once and without folders."""
    paths = list(dict.fromkeys(path for path, _ in failed))
    names = dict(zip(paths, image_names(paths), strict=True))
    failures: dict[FailedImage, None] = {}
    for path, error in failed:
        reason = without_folders(str(error), path, folder / INDEX)
        failures[FailedImage(names[path], reason.removeprefix(f"{path.name}: "))] = None
    return list(failures)
