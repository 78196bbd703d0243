"""The command: `repeat-xai`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, by default with what the shell gave; nothing is loaded before, so that Ctrl-C is heeded."""
    try:
        from repeat_xai.cli.app import run

        run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("repeat-xai: interrupted\n")
        sys.exit(INTERRUPTED)
