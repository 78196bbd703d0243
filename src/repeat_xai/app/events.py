"""The events of the page: which function runs when a button is pressed or a field is changed."""

from collections.abc import Iterator
from typing import Any

from repeat_xai.app import markup
from repeat_xai.app.job_request import used_settings
from repeat_xai.app.layout import AppPage, FormFields, draw_page
from repeat_xai.app.request_handler import FormValues, RequestHandler
from repeat_xai.app.snippets import command_snippet, python_snippet
from repeat_xai.errors import RepeatError

CONCURRENT_JOBS = 4
"""Jobs that run at the same time; others wait."""
CACHE_CLEANUP = (60, 3600)
"""Seconds between two searches for old files in Gradio's cache, and the age in seconds from which they are removed."""
Updates = dict[Any, Any]
"""New values for components of the page, as an event returns them."""
UNQUEUED: Updates = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""Options of events that are answered at once, without waiting for jobs."""


def build_page(handler: RequestHandler, *, size: int | None) -> Any:
    """Return the Gradio page with its events."""
    import gradio as gr

    with gr.Blocks(title="repeat-xai", analytics_enabled=False, fill_width=True, delete_cache=CACHE_CLEANUP) as blocks:
        names = [str(spec) for spec in handler.encoder_specs]
        page = draw_page(names, allow_other_encoders=handler.local, size=size)
        _add_photo_events(page, handler)
        _add_form_events(page.form)
        _add_job_events(page, handler)

        def close(request: gr.Request) -> None:
            handler.sessions.end(request.session_hash)

        blocks.unload(close)
    return blocks.queue(default_concurrency_limit=CONCURRENT_JOBS)


def _add_photo_events(page: AppPage, handler: RequestHandler) -> None:
    import gradio as gr

    def receive(request: gr.Request, event: gr.EventData) -> str:
        try:
            return markup.photo_figure(handler.receive_photo(request.session_hash, getattr(event, "upload", None)))
        except RepeatError as error:
            return markup.refusal(error)

    def pick(request: gr.Request, event: gr.EventData) -> str:
        try:
            return markup.photo_figure(handler.pick_sample(request.session_hash, getattr(event, "number", None)))
        except RepeatError as error:
            return markup.refusal(error)

    page.upload.upload(receive, None, page.photo, **UNQUEUED)
    page.samples.click(pick, None, page.photo, **UNQUEUED)


def _add_form_events(form: FormFields) -> None:
    """Show only those settings that the chosen methods use."""
    import gradio as gr

    def show_used(method: str, other: str, estimator: str) -> list[Any]:
        return [gr.update(visible=used) for used in used_settings({method, other} - {""}, estimator)]

    gr.on(
        [form.method.change, form.other_method.change, form.estimator.change],
        show_used,
        [form.method, form.other_method, form.estimator],
        [form.estimator, form.budget, form.masks, form.repeats, form.passes],
        **UNQUEUED,
    )


def _add_job_events(page: AppPage, handler: RequestHandler) -> None:
    import gradio as gr

    idle = {page.explain: gr.update(interactive=True), page.cancel: gr.update(interactive=False)}
    busy = {page.explain: gr.update(interactive=False), page.cancel: gr.update(interactive=True)}

    def start(request: gr.Request, *values: Any) -> Updates:
        try:
            job = handler.create_job(request.session_hash, FormValues(*values))
        except RepeatError as error:
            return {page.status: markup.refusal(error)}
        command, python = (
            write(job.requests, job.photo.snippet_path, device=handler.encoder_cache.device)
            for write in (command_snippet, python_snippet)
        )
        return busy | {
            page.status: markup.status_box(job.state),
            page.guide: gr.update(open=False),
            page.results: [],
            page.downloads: "",
            page.snippets: gr.update(visible=True),
            page.snippet_text: markup.snippet_boxes(command, python),
        }

    def run(request: gr.Request) -> Iterator[Updates]:
        yield {page.status: gr.skip()}  # where nothing at all is yielded, Gradio empties the outputs
        for update in handler.job_updates(request.session_hash):
            changes: Updates = {page.status: markup.status_box(update.state)}
            if update.pages is not None:
                changes[page.results] = [f"results/{path}" for path in update.pages]
            if update.files:
                changes[page.downloads] = markup.download_links(update.files)
            yield changes | (idle if update.state.end else {})

    def cancel(request: gr.Request) -> Updates:
        handler.cancel_job(request.session_hash)
        return idle | {page.status: markup.refusal("Cancelled")}

    buttons = [page.explain, page.cancel]
    changed_by_run = [page.status, page.results, page.downloads, *buttons]
    changed_by_start = [*changed_by_run, page.guide, page.snippets, page.snippet_text]
    started = page.explain.click(start, list(page.form), changed_by_start, **UNQUEUED)
    started.then(
        run,
        None,
        changed_by_run,
        concurrency_limit=CONCURRENT_JOBS,
        show_progress="hidden",
        api_visibility="private",
    )
    page.cancel.click(cancel, None, [page.status, *buttons], **UNQUEUED)
