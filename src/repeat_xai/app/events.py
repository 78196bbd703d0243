"""What happens on the page when something is pressed."""

from collections.abc import Iterator
from typing import Any

from repeat_xai.app import markup
from repeat_xai.app import snippets as words
from repeat_xai.app.job_request import knows
from repeat_xai.app.layout import Asking, Page, draw
from repeat_xai.app.requests import Desk, Form
from repeat_xai.errors import RepeatError

AT_ONCE = 4
"""Jobs under way at the same time; others wait for a place."""
KEPT = (60, 3600)
"""How often Gradio looks for files of its own to remove, and how old they get, in seconds."""
Updates = dict[Any, Any]


def app(desk: Desk, *, size: int | None) -> Any:
    """The page with all that happens on it."""
    import gradio as gr

    with gr.Blocks(title="repeat-xai", analytics_enabled=False, fill_width=True, delete_cache=KEPT) as blocks:
        page = draw([str(one) for one in desk.encoders], others=desk.local, size=size)
        _photos(page, desk)
        _budget(page.asking)
        _work(page, desk)

        def leave(request: gr.Request) -> None:
            desk.sessions.end(request.session_hash)

        blocks.unload(leave)
    return blocks.queue(default_concurrency_limit=AT_ONCE)


def _photos(page: Page, desk: Desk) -> None:
    import gradio as gr

    def receive(request: gr.Request, event: gr.EventData) -> str:
        try:
            return markup.photo(desk.receive(request.session_hash, getattr(event, "upload", None)))
        except RepeatError as error:
            return markup.refused(error)

    def pick(request: gr.Request, event: gr.EventData) -> str:
        try:
            return markup.photo(desk.pick(request.session_hash, getattr(event, "number", None)))
        except RepeatError as error:
            return markup.refused(error)

    hidden: Updates = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    page.upload.upload(receive, None, page.given, **hidden)
    page.samples.click(pick, None, page.given, **hidden)


def _budget(asking: Asking) -> None:
    """Only what the chosen methods know of can be filled in."""
    import gradio as gr

    fields = [asking.estimator, asking.pool, asking.masks, asking.repeats, asking.passes]

    def known(method: str, other: str, estimator: str) -> list[Any]:
        return [gr.update(visible=shown) for shown in knows({method, other} - {""}, estimator)]

    gr.on(
        [asking.method.change, asking.other_method.change, asking.estimator.change],
        known,
        [asking.method, asking.other_method, asking.estimator],
        fields,
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )


def _work(page: Page, desk: Desk) -> None:
    import gradio as gr

    idle = {page.explain: gr.update(interactive=True), page.cancel: gr.update(interactive=False)}
    busy = {page.explain: gr.update(interactive=False), page.cancel: gr.update(interactive=True)}
    shown = [page.status, page.frames, page.downloads, page.explain, page.cancel]

    def begin(request: gr.Request, *values: Any) -> Updates:
        try:
            job = desk.begin(request.session_hash, Form(*values))
        except RepeatError as error:
            return {page.status: markup.refused(error)}
        told = [
            write(job.wanted, job.given.called, device=desk.shelf.device) for write in (words.command, words.python)
        ]
        return busy | {
            page.status: markup.status(job.state),
            page.frames: [],
            page.downloads: "",
            page.same: gr.update(visible=True),
            page.words: markup.words(*told),
        }

    def work(request: gr.Request) -> Iterator[Updates]:
        yield {page.status: gr.skip()}  # of nothing at all Gradio would make empty outputs
        for news in desk.work(request.session_hash):
            told: Updates = {page.status: markup.status(news.state)}
            if news.pages is not None:
                told[page.frames] = [f"results/{address}" for address in news.pages]
            if news.files:
                told[page.downloads] = markup.downloads(news.files)
            yield told | (idle if news.state.end else {})

    def cancel(request: gr.Request) -> Updates:
        desk.cancel(request.session_hash)
        return idle | {page.status: markup.refused("Cancelled")}

    hidden: Updates = {"show_progress": "hidden", "api_visibility": "private"}
    started = page.explain.click(begin, list(page.asking), [*shown, page.same, page.words], queue=False, **hidden)
    started.then(work, None, shown, concurrency_limit=AT_ONCE, **hidden)
    page.cancel.click(cancel, None, [page.status, page.explain, page.cancel], queue=False, **hidden)
