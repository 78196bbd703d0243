"""The colours and fonts of the app, which are those of the result pages; no font is loaded from another machine."""

from __future__ import annotations

from typing import Any

FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")


def theme() -> Any:
    """Return the theme that Gradio draws the app with."""
    import gradio as gr

    blue = gr.themes.Color(
        *("#eef6fb", "#d8ebf7", "#b3d9ef", "#7cc4f0", "#3fa1da", "#0072b2", "#005f96", "#004f7d", "#003f64", "#00304d"),
        "#002036",
    )
    base = gr.themes.Base(primary_hue=blue, neutral_hue="slate", radius_size="sm", font=FONT, font_mono=MONO)
    return base.set(
        body_background_fill="#ffffff",
        body_background_fill_dark="#15171a",
        body_text_color="#1d2126",
        body_text_color_dark="#e6e8ea",
        body_text_color_subdued="#565d66",
        body_text_color_subdued_dark="#a3abb4",
        block_label_text_color="#565d66",
        block_label_text_color_dark="#a3abb4",
        block_title_text_color="#565d66",
        block_title_text_color_dark="#a3abb4",
        link_text_color="#005f96",
        link_text_color_dark="#7cc4f0",
        link_text_color_visited="#005f96",
        link_text_color_visited_dark="#7cc4f0",
        link_text_color_hover="#004f7d",
        link_text_color_hover_dark="#b3d9ef",
        color_accent="#005f96",
        block_background_fill_dark="#1f2226",
        background_fill_primary_dark="#15171a",
        background_fill_secondary_dark="#1f2226",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_300",
        button_primary_background_fill_hover_dark="*primary_200",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#15171a",
    )
