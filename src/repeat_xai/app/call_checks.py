"""What the page may call, and with which values: a call is checked before Gradio or the app sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeGuard, final

import gradio as gr
from gradio.blocks import BlockFunction

from repeat_xai.app.request_body import RefusedError

MOST_BYTES = 64 * 2**10
MOST_LETTERS = 4096
"""Letters of a text, such as the name of an encoder with a file's place in it."""
MOST_NUMBER = 2**53
ALLOWED = {"data", "event_data", "fn_index", "session_hash", "trigger_id"}


@final
class Calls:
    """The functions of the page by their numbers, with the fields that each one is given."""

    def __init__(self, blocks: gr.Blocks) -> None:
        # A function that runs when the page is closed is for Gradio itself to call.
        self._functions: Mapping[int, BlockFunction] = {
            number: function
            for number, function in blocks.fns.items()
            if "unload" not in (event for _, event in function.targets)
        }

    def checked(self, body: bytes) -> tuple[str, bytes]:
        """Return the session that a call is for, and the call written anew from what was checked."""
        try:
            call = json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise RefusedError(400, "a call must be JSON") from error
        if not isinstance(call, dict) or not call.keys() <= ALLOWED:
            raise RefusedError(422, f"a call holds {', '.join(sorted(ALLOWED))}, and nothing else")
        number, session, values = call.get("fn_index"), call.get("session_hash"), call.get("data")
        if not _is_whole(number) or number not in self._functions:
            raise RefusedError(422, "fn_index names no function of this page")
        if not isinstance(session, str):
            raise RefusedError(422, "session_hash must be a text")
        function = self._functions[number]
        fields = function.inputs
        if not isinstance(values, list) or len(values) != len(fields):
            raise RefusedError(422, f"data must be a list of {len(fields)} values")
        for field, value in zip(fields, values, strict=True):
            if not accepts(field, value):
                raise RefusedError(422, f"{getattr(field, 'elem_id', None) or 'a field'} cannot hold this value")
        if not (_is_plain(call.get("event_data")) if function.collects_event_data else call.get("event_data") is None):
            raise RefusedError(422, "event_data must be a few numbers and texts by name, for functions that take it")
        if call.get("trigger_id") is not None and not _is_whole(call["trigger_id"]):
            raise RefusedError(422, "trigger_id must be a whole number")
        return session, json.dumps(call).encode()


def accepts(field: object, value: object) -> bool:
    """Tell whether a field of the page can hold a value: of its type, and in its list where it has one."""
    if isinstance(field, gr.Number):
        return value is None or _is_number(value)
    if isinstance(field, gr.Dropdown) and (value is None or field.allow_custom_value):
        return value is None or _is_text(value)
    if isinstance(field, gr.Dropdown | gr.Radio):
        return isinstance(value, str) and value in [known for _, known in field.choices]
    return False


def _is_plain(data: object) -> bool:
    """Tell whether the details of an event are a few plain values."""
    if not isinstance(data, dict) or len(data) > 4:
        return False
    return all(_is_text(name) and (_is_text(value) or _is_whole(value)) for name, value in data.items())


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MOST_LETTERS and value.isprintable()


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Tell whether a value is a number, and one that a browser can hold to the unit."""
    return (_is_whole(value) or isinstance(value, float)) and abs(value) < MOST_NUMBER


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
