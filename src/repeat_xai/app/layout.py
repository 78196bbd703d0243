"""What is on the page, as Gradio draws it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from repeat_xai.app import markup
from repeat_xai.app.job_request import NAMES, Budget
from repeat_xai.data.image_files import SAMPLES

Component = Any
"""One of Gradio's."""
NOTHING, SAME = ("nothing", ""), ("the same encoder", "")


class Asking(NamedTuple):
    """What is filled in, in the order of a form."""

    encoder: Component
    method: Component
    other_encoder: Component
    other_method: Component
    estimator: Component
    masks: Component
    repeats: Component
    pool: Component
    passes: Component
    size: Component
    seed: Component


class Page(NamedTuple):
    """Everything on it."""

    upload: Component
    given: Component
    samples: Component
    asking: Asking
    explain: Component
    cancel: Component
    status: Component
    frames: Component
    downloads: Component
    same: Component
    words: Component


def asset(name: str) -> str:
    """A file of the app's own."""
    return files("repeat_xai.app").joinpath("assets", name).read_text(encoding="utf-8")


def draw(encoders: Sequence[str], *, others: bool, size: int | None) -> Page:
    """All of it, within a page that has been begun: what is asked on one side, the answer on the other."""
    import gradio as gr

    gr.HTML(markup.HEAD)
    with gr.Row(elem_id="app", equal_height=False):
        with gr.Column(elem_id="ask", scale=0, min_width=320):
            upload = gr.HTML(markup.upload(), js_on_load=asset("upload.js"), elem_id="upload")
            samples = gr.HTML(markup.samples(SAMPLES), js_on_load=asset("samples.js"), elem_id="samples")
            given = gr.HTML(elem_id="given")
            asking = _asking(encoders, others=others, size=size)
            with gr.Row(elem_id="buttons"):
                explain = gr.Button("Explain", variant="primary", elem_id="explain", min_width=120)
                cancel = gr.Button("Cancel", interactive=False, elem_id="cancel", min_width=120)
        with gr.Column(elem_id="answer", min_width=320):
            status = gr.HTML(markup.EMPTY, elem_id="status")
            frame = '<div class="frames"></div>'
            frames = gr.HTML([], html_template=frame, js_on_load=asset("frames.js"), elem_id="frames")
            downloads = gr.HTML(elem_id="downloads")
            title = "The same by command and in Python"
            with gr.Accordion(title, open=False, visible=False, elem_id="same") as same:
                words = gr.HTML(js_on_load=asset("copy.js"), elem_id="words")
    return Page(upload, given, samples, asking, explain, cancel, status, frames, downloads, same, words)


def _asking(encoders: Sequence[str], *, others: bool, size: int | None) -> Asking:
    import gradio as gr

    usual = Budget()

    def number(label: str, value: int, name: str, *, info: str | None = None, visible: bool = True) -> Component:
        return gr.Number(
            value,
            label=label,
            info=info,
            visible=visible,
            precision=0,
            min_width=100,
            elem_id=name,
        )

    encoder = gr.Dropdown(
        list(encoders), value=encoders[0], allow_custom_value=others, label="Encoder", elem_id="encoder"
    )
    method = gr.Dropdown(list(NAMES), value="repeat", label="Method", elem_id="method")
    with gr.Accordion("Compare with", open=False, elem_id="compare"):
        other_method = gr.Dropdown([NOTHING, *NAMES], value="", label="Method", elem_id="other-method")
        other_encoder = gr.Dropdown(
            [SAME, *encoders], value="", allow_custom_value=others, label="Encoder", elem_id="other-encoder"
        )
    with gr.Accordion("Budget and seed", open=False, elem_id="budget"):
        estimator = gr.Radio(["fast", "exact"], value=usual.estimator, label="Estimator", elem_id="estimator")
        pool = number("Masks in the pool", 0, "pool", info="0: as many as accuracy asks")
        with gr.Row():
            masks = number("Masks a repeat", usual.masks, "masks")
            repeats = number("Repeats", usual.repeats, "repeats")
        passes = number("Passes", usual.passes, "passes", visible=False)
        with gr.Row():
            seed = number("Seed", 0, "seed", info="0 or more")
            side = number("Side of the input", size or 0, "size", info="0: the encoder’s own")
    return Asking(
        encoder=encoder,
        method=method,
        other_encoder=other_encoder,
        other_method=other_method,
        estimator=estimator,
        masks=masks,
        repeats=repeats,
        pool=pool,
        passes=passes,
        size=side,
        seed=seed,
    )
