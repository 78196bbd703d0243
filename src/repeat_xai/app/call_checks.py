"""The checks of a call of one of the page's functions, made before Gradio or the app sees the call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeGuard, final

import gradio as gr
from gradio.blocks import BlockFunction

from repeat_xai.app.request_body import RefusedError

MAX_CALL_BYTES = 64 * 2**10
MAX_TEXT_LENGTH = 4096
"""Characters of a text value, such as the name of an encoder that contains the path of a file."""
MAX_NUMBER = 2**53
"""Smallest whole number that JavaScript may have rounded."""
MAX_EVENT_VALUES = 4
CALL_KEYS = {"data", "event_data", "fn_index", "session_hash", "trigger_id"}
"""Keys that a call may have. Gradio knows further ones, which the page does not need."""


@final
class CallChecker:
    """The functions of the page by number, each with the form fields whose values it takes."""

    def __init__(self, blocks: gr.Blocks) -> None:
        # Gradio itself calls the function that runs when the page is closed; no browser may call it.
        self._functions: Mapping[int, BlockFunction] = {
            number: function
            for number, function in blocks.fns.items()
            if "unload" not in (event for _, event in function.targets)
        }

    def check(self, body: bytes) -> tuple[str, bytes]:
        """Return the session that a call is for, and the call serialised anew from the values that were checked."""
        try:
            call = json.loads(body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise RefusedError(400, "a call must be JSON") from error
        if not isinstance(call, dict) or not call.keys() <= CALL_KEYS:
            raise RefusedError(422, f"a call holds {', '.join(sorted(CALL_KEYS))}, and nothing else")
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
            if not field_accepts(field, value):
                raise RefusedError(422, f"{getattr(field, 'elem_id', None) or 'a field'} cannot hold this value")
        event = call.get("event_data")
        if not (_is_plain(event) if function.collects_event_data else event is None):
            raise RefusedError(422, "event_data must be a few numbers and texts by name, for functions that take it")
        if call.get("trigger_id") is not None and not _is_whole(call["trigger_id"]):
            raise RefusedError(422, "trigger_id must be a whole number")
        return session, json.dumps(call).encode()


def field_accepts(field: object, value: object) -> bool:
    """Tell whether a form field can hold a value: the type must fit, and where the field has a list, the choice."""
    if isinstance(field, gr.Number):
        return value is None or _is_number(value)
    if isinstance(field, gr.Dropdown) and (value is None or field.allow_custom_value):
        return value is None or _is_text(value)
    if isinstance(field, gr.Dropdown | gr.Radio):
        return isinstance(value, str) and value in [choice for _, choice in field.choices]
    return False


def _is_plain(event: object) -> bool:
    """Tell whether the details of an event are a few plain values."""
    if not isinstance(event, dict) or len(event) > MAX_EVENT_VALUES:
        return False
    return all(_is_text(name) and (_is_text(value) or _is_whole(value)) for name, value in event.items())


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and value.isprintable()


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Tell whether a value is a number, and small enough that a browser does not round it."""
    return (_is_whole(value) or isinstance(value, float)) and abs(value) < MAX_NUMBER


def _refuse_constant(constant: str) -> None:
    """Refuse NaN and infinities, which Python's parser would accept."""
    raise ValueError(f"{constant} is not a number in JSON")
