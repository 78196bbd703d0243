"""The command `repeat-xai serve` starts the app."""

from __future__ import annotations

from typing import Annotated

import typer

from repeat_xai import app as web_app

ENCODERS = "Encoders"
ADDRESS = "Address"
ACCESS = "Access from other machines"


def serve(
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=WEIGHTS]",
            rich_help_panel=ENCODERS,
            help="Offer this encoder in the app, before efficientnet_lite0, which is always offered. WEIGHTS is a file "
            "of weights, or 'random' for an untrained network. May be given several times; the app starts with the "
            "first one.",
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=ENCODERS,
            help="Use square inputs with this side, in pixels, in place of the encoder's own size.",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            rich_help_panel=ENCODERS,
            help="Run the encoders on this device: auto (a GPU if there is one), cpu or cuda.",
        ),
    ] = "auto",
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, rich_help_panel=ADDRESS, help="Serve the app on this port, or on any free one for 0."
        ),
    ] = 7860,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", rich_help_panel=ADDRESS, help="Open the app in a browser once it runs."),
    ] = True,
    host: Annotated[
        str,
        typer.Option(
            rich_help_panel=ACCESS,
            help="Serve the app on this address. By default only this machine can reach the app; with 0.0.0.0, every "
            "machine that can reach this one can.",
        ),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PORT]",
            rich_help_panel=ACCESS,
            help="Answer requests for this name as well, such as that of a web server in front of the app. "
            "May be given several times.",
        ),
    ] = None,
    token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token",
            rich_help_panel=ACCESS,
            help="Let in only browsers that open the printed address, which holds a secret token. This applies where "
            "other machines can reach the app.",
        ),
    ] = True,
) -> None:
    """Serve the app: upload a photo, choose an encoder and a method, and watch the explanation form in a browser."""
    web_app.serve(
        list(dict.fromkeys((*(encoder or ()), "efficientnet_lite0"))),
        size=size,
        device=device,
        host=host,
        port=port,
        allow_hosts=allow_host or (),
        token=token,
        browser=browser,
        announce=typer.echo,
    )
