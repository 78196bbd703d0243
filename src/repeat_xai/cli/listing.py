"""`repeat-xai list`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from repeat_xai.encoders import names


class Kind(StrEnum):
    """What can be listed."""

    encoders = "encoders"


def list_names(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """List what can be asked for by name."""
    for name in {Kind.encoders: names}[kind]():
        typer.echo(name)
