"""The commands by name, each loaded when it is run: help and completion do not wait for torch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, NamedTuple, final

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from repeat_xai.cli import INTERRUPTED, leaving_at_once
from repeat_xai.cli.help_examples import EXAMPLES, STATUS
from repeat_xai.errors import ConfigurationError, RepeatError
from repeat_xai.version import __version__

USAGE: Any = typer.BadParameter.__base__
"""Typer's error of wrong usage, which has no public name."""


class Place(NamedTuple):
    """Where a command is, and what it does in a few words."""

    module: str
    function: str
    line: str


COMMANDS = {
    "explain": Place(
        "explain",
        "explain",
        "Explain images: panels, maps, provenance, a page.",
    ),
    "demo": Place("demo", "demo", "Explain four photos that come along."),
    "screen": Place(
        "screen",
        "screen",
        "Which images does the encoder not know?",
    ),
    "evaluate": Place(
        "evaluate",
        "evaluate",
        "Judge methods on a dataset: tables and figures.",
    ),
    "serve": Place(
        "serve",
        "serve",
        "Explain photos in a browser, as masks arrive.",
    ),
    "reproduce": Place(
        "reproduce",
        "reproduce",
        "The paper's tables and figures anew.",
    ),
    "list": Place("list_names", "list_names", "List what can be asked for by name."),
}


@final
class Lazy(TyperGroup):
    """Commands that are known by their line until one is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """What help and completion need of it."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name].line) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, and what it is given."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, loaded(str(name)), rest

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with heeding():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with heeding():
            return super().invoke(ctx)


@contextmanager
def heeding() -> Iterator[None]:
    """End any command in a line on Ctrl-C, also while it is loaded, and where its options make no sense."""
    try:
        yield
    except USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        command = error.ctx.command_path if error.ctx is not None else "repeat-xai"
        typer.echo(f"repeat-xai: {' '.join(error.format_message().split())}; see {command} --help", err=True)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        typer.echo("repeat-xai: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None


def loaded(name: str) -> Any:
    """The command of this name, with its examples."""
    place = COMMANDS[name]
    with leaving_at_once():
        function = getattr(import_module(f"repeat_xai.cli.{place.module}"), place.function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    alone.command(name, epilog=epilog(EXAMPLES[name]))(function)
    return typer.main.get_command(alone)


def epilog(examples: Sequence[str]) -> str:
    """Return the text below the help: examples, one per line, and the meaning of the exit status."""
    return "\n\n".join(("Examples:", *(escape(f"  {line}") for line in examples), "", " ".join(STATUS)))


app = typer.Typer(
    name="repeat-xai",
    cls=Lazy,
    help="Which pixels does a representation depend on, and how sure are we that each one matters?",
    epilog=epilog(EXAMPLES[""]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def told(asked: bool) -> bool:
    """The version, and no more."""
    if asked:
        typer.echo(f"repeat-xai {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=told, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What every command shares."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command; whatever is refused is said in one line, with status 2 for wrong usage and 1 for the rest."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _teller()
        try:
            app(arguments, prog_name="repeat-xai")
        except RepeatError as error:
            typer.echo(f"repeat-xai: {error}", err=True)
            sys.exit(2 if isinstance(error, ConfigurationError) else 1)
        except OSError as error:  # whatever else writes a file says which one
            if error.filename is not None:
                raise
            typer.echo(f"repeat-xai: standard output cannot be written ({error.strerror})", err=True)
            sys.exit(1)


def _teller() -> Callable[..., None]:
    """Warnings in a line each, said once, without where in the code they come from."""
    said: set[str] = set()

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            typer.echo(f"repeat-xai: {message}", err=True)

    return tell
