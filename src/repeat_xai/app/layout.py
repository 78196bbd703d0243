"""The components of the page, as Gradio draws them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from repeat_xai.app import markup
from repeat_xai.app.job_request import JobSettings, method_label, offered_methods
from repeat_xai.data.image_files import SAMPLES

Component = Any
"""A component of Gradio, which is imported only when the page is drawn."""
SAME_METHOD, SAME_ENCODER = ("The same method", ""), ("The same encoder", "")
"""Choices of the comparison, as label and value, that change nothing."""
ENCODER_HELP = "The neural network to explain."
NAMES_HELP = "Other names can be typed, such as torchvision:resnet50 or timm:vit_small_patch16_224."


class FormFields(NamedTuple):
    """The fields of the form, in the order in which a call sends their values."""

    encoder: Component
    method: Component
    other_encoder: Component
    other_method: Component
    estimator: Component
    masks: Component
    repeats: Component
    budget: Component
    passes: Component
    size: Component
    seed: Component


class AppPage(NamedTuple):
    """The components of the page that events read or change."""

    upload: Component
    samples: Component
    photo: Component
    form: FormFields
    explain: Component
    cancel: Component
    status: Component
    guide: Component
    results: Component
    downloads: Component
    snippets: Component
    snippet_text: Component


def read_asset(name: str) -> str:
    """Return the text of a file in the app's folder of assets."""
    return files("repeat_xai.app").joinpath("assets", name).read_text(encoding="utf-8")


def draw_page(encoders: Sequence[str], *, allow_other_encoders: bool, size: int | None) -> AppPage:
    """Draw the page inside the current Gradio block: the form on the left, the result on the right."""
    import gradio as gr

    gr.HTML(markup.HEADER)
    with gr.Row(elem_id="app", equal_height=False):
        with gr.Column(elem_id="ask", scale=0, min_width=320):
            upload = gr.HTML(markup.upload_field(), js_on_load=read_asset("upload.js"), elem_id="upload")
            samples = gr.HTML(markup.sample_buttons(SAMPLES), js_on_load=read_asset("samples.js"), elem_id="samples")
            photo = gr.HTML(elem_id="photo")
            form = _draw_form(encoders, allow_other_encoders=allow_other_encoders, size=size)
            with gr.Row(elem_id="buttons"):
                explain = gr.Button("Explain", variant="primary", elem_id="explain", min_width=120)
                cancel = gr.Button("Cancel", interactive=False, elem_id="cancel", min_width=120)
        with gr.Column(elem_id="answer", min_width=320):
            status = gr.HTML(markup.START_HINT, elem_id="status")
            with gr.Accordion("How to read the result", open=True, elem_id="guide") as guide:
                gr.HTML(read_asset("guide.html"))
            frames = '<div class="frames"></div>'
            results = gr.HTML([], html_template=frames, js_on_load=read_asset("frames.js"), elem_id="frames")
            downloads = gr.HTML(elem_id="downloads")
            title = "Get the same result by command or in Python"
            with gr.Accordion(title, open=False, visible=False, elem_id="snippets") as snippets:
                snippet_text = gr.HTML(js_on_load=read_asset("copy.js"), elem_id="snippet-text")
    return AppPage(
        upload=upload,
        samples=samples,
        photo=photo,
        form=form,
        explain=explain,
        cancel=cancel,
        status=status,
        guide=guide,
        results=results,
        downloads=downloads,
        snippets=snippets,
        snippet_text=snippet_text,
    )


def _draw_form(encoders: Sequence[str], *, allow_other_encoders: bool, size: int | None) -> FormFields:
    import gradio as gr

    defaults = JobSettings()
    methods = [(method_label(name), name) for name in offered_methods()]

    def number(label: str, value: int, name: str, *, info: str, visible: bool = True) -> Component:
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
        list(encoders),
        value=encoders[0],
        allow_custom_value=allow_other_encoders,
        label="Encoder",
        info=f"{ENCODER_HELP} {NAMES_HELP}" if allow_other_encoders else ENCODER_HELP,
        elem_id="encoder",
    )
    method = gr.Dropdown(
        methods,
        value="repeat",
        label="Method",
        info="How importance is found. Only REPEAT says which pixels are certainly important.",
        elem_id="method",
    )
    with gr.Accordion("Compare with a second result", open=False, elem_id="compare"):
        other_method = gr.Dropdown(
            [SAME_METHOD, *methods],
            value="",
            label="Second method",
            info="A second result is computed and shown beside the first.",
            elem_id="other-method",
        )
        other_encoder = gr.Dropdown(
            [SAME_ENCODER, *encoders],
            value="",
            allow_custom_value=allow_other_encoders,
            label="Second encoder",
            info="The encoder of the second result.",
            elem_id="other-encoder",
        )
    with gr.Accordion("Settings", open=False, elem_id="settings"):
        estimator = gr.Radio(
            [("Fast", "fast"), ("Exact", "exact")],
            value=defaults.estimator,
            label="Estimator",
            info="Fast estimates the votes of all repeats from one set of masks. Exact runs every repeat, as in the "
            "paper, and takes far longer.",
            elem_id="estimator",
        )
        budget = number(
            "Masks in total (budget)",
            0,
            "budget",
            info="Each mask hides random parts of the photo and costs one encoder call. With 0, masks are added until "
            "the result is as accurate as that of the repeats below, or 4,096 are drawn. More measure the votes more "
            "exactly, but do not settle undecided pixels.",
        )
        repeats = number(
            "Repeats",
            defaults.repeats,
            "repeats",
            info="Each repeat draws new random masks and casts one vote on every pixel. More repeats measure the "
            "share of votes more exactly.",
        )
        masks = number(
            "Masks per repeat",
            defaults.masks,
            "masks",
            info="Number of masked copies of the photo in a repeat. With more, the repeats agree more, and fewer "
            "pixels are undecided.",
        )
        passes = number(
            "Passes",
            defaults.passes,
            "passes",
            info="Number of runs, each on a slightly changed photo, of a method that casts no votes. Its uncertainty "
            "is how much these runs differ.",
            visible=False,
        )
        side = number(
            "Input size",
            size or 0,
            "size",
            info="Side of the square image that the encoder sees, in pixels. With 0, it is the encoder’s own.",
        )
        seed = number(
            "Random seed",
            0,
            "seed",
            info="Number that the random masks are drawn from. The same seed gives the same result.",
        )
    return FormFields(
        encoder=encoder,
        method=method,
        other_encoder=other_encoder,
        other_method=other_method,
        estimator=estimator,
        masks=masks,
        repeats=repeats,
        budget=budget,
        passes=passes,
        size=side,
        seed=seed,
    )
