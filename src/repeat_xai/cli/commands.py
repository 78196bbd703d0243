"""The commands by name. Each is loaded when it is run, so that help and completion need not wait for torch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any, NamedTuple, final

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from repeat_xai.cli import INTERRUPTED, leaving_at_once
from repeat_xai.cli.help_examples import EXAMPLES, STATUS
from repeat_xai.errors import ConfigurationError, RepeatError
from repeat_xai.version import __version__

USAGE: Any = typer.BadParameter.__base__
"""Typer's error for wrong usage. It has no public name of its own."""


class CommandEntry(NamedTuple):
    """The module and function of a command, and what it does in a few words."""

    module: str
    function: str
    summary: str


COMMANDS = {
    "explain": CommandEntry(
        "explain",
        "explain",
        "Show which pixels of an image an encoder's code depends on.",
    ),
    "match": CommandEntry(
        "match",
        "match",
        "Show why two images match, and which of their parts go together.",
    ),
    "demo": CommandEntry("demo", "demo", "Explain four sample photos, without any download."),
    "screen": CommandEntry(
        "screen",
        "screen",
        "Rank images by uncertainty, to find those that the encoder may not know.",
    ),
    "evaluate": CommandEntry(
        "evaluate",
        "evaluate",
        "Judge methods and encoders by metrics on a dataset.",
    ),
    "serve": CommandEntry(
        "serve",
        "serve",
        "Explain your photos in an app in the browser.",
    ),
    "reproduce": CommandEntry(
        "reproduce",
        "reproduce",
        "Make the tables and figures of the paper on REPEAT again.",
    ),
    "list": CommandEntry(
        "list_names", "list_names", "List encoders, methods, metrics, thresholds, kernels, datasets and executors."
    ),
}


@final
class LazyGroup(TyperGroup):
    """A group of commands of which only the summaries are loaded until one is run."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return the command with its summary alone, which is all that help and completion need."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name].summary) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command itself, loaded now, with its arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with one_line_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with one_line_errors():
            return super().invoke(ctx)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print one line and end the command on Ctrl-C, also while it is loaded, and for options that make no sense."""
    try:
        yield
    except USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        command = error.ctx.command_path if error.ctx is not None else "repeat-xai"
        message = " ".join(error.format_message().replace("Value error, ", "").split()).removesuffix(".")
        typer.echo(f"repeat-xai: {message}; see {command} --help", err=True)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        typer.echo("repeat-xai: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None


def load_command(name: str) -> Any:
    """Load the command of this name, with its examples."""
    entry = COMMANDS[name]
    with leaving_at_once():
        function = getattr(import_module(f"repeat_xai.cli.{entry.module}"), entry.function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    alone.command(name, help=_paragraphs(function.__doc__), epilog=epilog(EXAMPLES[name]))(function)
    return typer.main.get_command(alone)


def _paragraphs(docstring: str) -> str:
    """Return a docstring with each paragraph in one line, which the help then breaks as the terminal is wide."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(docstring).split("\n\n"))


def epilog(examples: Sequence[str]) -> str:
    """Return the text below the help: examples, one per line, and the meaning of the exit status."""
    return "\n\n".join(("Examples:", *(escape(f"  {line}") for line in examples), "", " ".join(STATUS)))


app = typer.Typer(
    name="repeat-xai",
    cls=LazyGroup,
    help="Find out which pixels of an image an encoder's code depends on, and how certain this is for each of "
    "them.\n\nAn encoder is a network that turns an image into a vector, its code. No labels are needed.",
    epilog=epilog(EXAMPLES[""]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def print_version(wanted: bool) -> bool:
    """Print the version and exit, if that is wanted."""
    if wanted:
        typer.echo(f"repeat-xai {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command. An error is printed in one line; the status is 2 for wrong usage and 1 for all others."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _print_warnings_once()
        try:
            app(arguments, prog_name="repeat-xai")
        except RepeatError as error:
            typer.echo(f"repeat-xai: {error}", err=True)
            sys.exit(2 if isinstance(error, ConfigurationError) else 1)
        except OSError as error:  # only writing to standard output fails without a file name
            if error.filename is not None:
                raise
            typer.echo(f"repeat-xai: standard output cannot be written ({error.strerror})", err=True)
            sys.exit(1)


def _print_warnings_once() -> Callable[..., None]:
    """Return a function that prints each warning once, in one line without its place in the code."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            typer.echo(f"repeat-xai: {message}", err=True)

    return show
