"""The Hugging Face hub, from which timm and transformers download weights: whether it answers, and without output."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from repeat_xai.errors import reason

PATIENCE_SECONDS = 10
"""Time the hub has to answer."""
LIBRARIES = ("huggingface_hub", "timm", "transformers")
"""Libraries that write to the terminal while they load weights."""
LOADING_LOCK = threading.Lock()
"""Held while these libraries are quiet, since their log levels belong to the whole process."""


def why_unreachable(model: str) -> str:
    """Return why the hub cannot be asked for a model, or an empty text if it answers.

    The libraries would ask five times for each file before they give up. Errors that say that there is no such model
    are raised as huggingface_hub raises them.
    """
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        huggingface_hub.model_info(model, timeout=PATIENCE_SECONDS)
    except (HFValidationError, RepositoryNotFoundError):
        raise
    except Exception as error:  # the hub's client fails with errors of every kind
        return reason(error)
    return ""


def is_downloaded(model: str, revision: str | None) -> bool:
    """Return whether any file of a model of the hub is in the local cache."""
    import huggingface_hub

    try:
        huggingface_hub.snapshot_download(model, revision=revision, local_files_only=True)
    except Exception:  # huggingface_hub may also reject the name or meet a damaged cache
        return False
    return True


@contextmanager
def quietly() -> Iterator[None]:
    """Keep libraries that load weights from writing log lines, warnings or progress bars; one block at a time."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    loggers = [logging.getLogger(library) for library in LIBRARIES]
    transformers_logging: Any = sys.modules.get("transformers.utils.logging")
    with LOADING_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        levels = [logger.level for logger in loggers]
        hub_bars = not are_progress_bars_disabled()
        transformers_bars = transformers_logging is not None and transformers_logging.is_progress_bar_enabled()
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        disable_progress_bars()
        if transformers_bars:
            transformers_logging.disable_progress_bar()
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if transformers_bars:
                transformers_logging.enable_progress_bar()
            (enable_progress_bars if hub_bars else disable_progress_bars)()
