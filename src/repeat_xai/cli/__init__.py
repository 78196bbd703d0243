"""The command: `repeat-xai`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import typer

from repeat_xai.cli.demo import demo
from repeat_xai.cli.evaluate import evaluate
from repeat_xai.cli.explain import explain
from repeat_xai.cli.listing import list_names
from repeat_xai.cli.reproduce import reproduce
from repeat_xai.cli.screen import screen
from repeat_xai.cli.serve import serve
from repeat_xai.errors import ConfigurationError, RepeatError

app = typer.Typer(
    name="repeat-xai",
    help="Which pixels does a representation depend on, and how sure are we that each one matters?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
app.command()(explain)
app.command()(demo)
app.command()(screen)
app.command()(evaluate)
app.command()(serve)
app.command()(reproduce)
app.command("list")(list_names)


def main() -> None:
    """Run the command; whatever is refused is said in one line, with status 2 for wrong usage and 1 for the rest."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _teller()
        try:
            app()
        except RepeatError as error:
            typer.echo(f"repeat-xai: {error}", err=True)
            sys.exit(2 if isinstance(error, ConfigurationError) else 1)


def _teller() -> Callable[..., None]:
    """Warnings in a line each, said once, without where in the code they come from."""
    said: set[str] = set()

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            typer.echo(f"repeat-xai: {message}", err=True)

    return tell
