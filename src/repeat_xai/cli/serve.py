"""`repeat-xai serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from repeat_xai import app as room


def serve(
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=WEIGHTS]", help="An encoder to choose from, the first of them at first; repeatable."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side of the square input, if not the encoder's own.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    host: Annotated[str, typer.Option(help="Address to serve on; by default this machine alone can reach it.")] = (
        "127.0.0.1"
    ),
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PORT]",
            help="A further name that browsers reach the app by, such as that of a server in front of it; repeatable.",
        ),
    ] = None,
    token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token",
            help="Ask browsers for the token in the printed address, where other machines can reach the app.",
        ),
    ] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve on; 0: any that is free.")] = 7860,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")] = True,
) -> None:
    """The app: upload a photo, choose encoder and method, and watch the explanation get better in a browser."""
    room.serve(
        list(dict.fromkeys((*(encoder or ()), "efficientnet_lite0"))),
        size=size,
        device=device,
        host=host,
        port=port,
        allow_hosts=allow_host or (),
        token=token,
        browser=browser,
        told=typer.echo,
    )
