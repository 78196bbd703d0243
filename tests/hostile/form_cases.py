"""Calls of the app's functions with values that its page would never send."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from apps import FORM, PAGE, body

UPLOAD, SAMPLE, SHOW_USED, START = 0, 1, 2, 3
FIELDS = (
    "encoder",
    "method",
    "other_encoder",
    "other_method",
    "estimator",
    "masks",
    "repeats",
    "budget",
    "passes",
    "size",
    "seed",
)
DEEP = 20_000


@dataclass(frozen=True)
class Call:
    """A call by its bytes, and the answer that it should get."""

    name: str
    content: bytes
    expected: Literal["right", "refused"] = "refused"
    message: str = ""
    kind: str = "application/json"

    def __str__(self) -> str:
        return self.name


def of(name: str, call: Any, message: str = "", *, expected: Literal["right", "refused"] = "refused") -> Call:
    return Call(name, json.dumps(call).encode(), expected, message)


def with_field(field: str, value: Any, message: str, *, expected: Literal["right", "refused"] = "refused") -> Call:
    """Return a call with the page's values, of which one field is changed."""
    values = [value if name == field else usual for name, usual in zip(FIELDS, FORM, strict=True)]
    return of(f"{field} {str(value)[:40]}", body(START, values), message, expected=expected)


FILE = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
VALUES = [
    *(with_field(field, FILE, f"{field.replace('_', '-')} cannot hold") for field in FIELDS),
    *(with_field(field, [FORM[number]], "cannot hold this value") for number, field in enumerate(FIELDS)),
    with_field("encoder", None, "no encoder is chosen"),
    with_field("encoder", "x" * 5000, "encoder cannot hold"),
    with_field("encoder", "a\nb", "encoder cannot hold"),
    with_field("encoder", "a\0b", "encoder cannot hold"),
    with_field("encoder", "nothing:there", "", expected="right"),  # an error follows when it is loaded
    with_field("encoder", True, "encoder cannot hold"),
    with_field("method", "Repeat", "method cannot hold"),
    with_field("method", "repeat:", "method cannot hold"),
    with_field("method", "", "method cannot hold"),
    with_field("method", None, "unknown method"),
    with_field("other_method", "relax", "would equal the first"),
    with_field("other_encoder", 5, "other-encoder cannot hold"),
    with_field("estimator", "magic", "estimator cannot hold"),
    with_field("estimator", None, "estimator cannot hold"),
    with_field("masks", True, "masks cannot hold"),
    with_field("masks", "20", "masks cannot hold"),
    with_field("masks", None, "masks must be"),
    with_field("masks", -1, "value -1 is less than|must be a whole number"),
    with_field("masks", 10**20, "masks cannot hold"),
    with_field("masks", 1e15, "too many|greater than|at most"),
    with_field("masks", 10**400, "masks cannot hold"),
    with_field("masks", 10**6, "too many here"),
    with_field("masks", 20.4, "", expected="right"),  # the field rounds its value
    with_field("repeats", 0, "repeats must be"),
    with_field("budget", 10**6, "too many here"),
    with_field("passes", 1, "passes must be"),
    with_field("size", 5000, "too large here"),
    with_field("seed", -3, "seed must be|less than"),
    with_field("seed", 2**60, "seed cannot hold"),
]
SHAPES = [
    Call("nothing", b"", message="must be JSON"),
    Call("no JSON", b"{", message="must be JSON"),
    Call("not a number", json.dumps(body(START, FORM)).replace("20", "NaN").encode(), message="must be JSON"),
    Call("infinity", json.dumps(body(START, FORM)).replace("20", "-Infinity").encode(), message="must be JSON"),
    Call(
        "beyond floats", json.dumps(body(START, FORM)).replace(" 20,", " 1e999,").encode(), message="masks cannot hold"
    ),
    Call(
        "5000 digits", json.dumps(body(START, FORM)).replace(" 20,", f" {'9' * 5000},").encode(), message="must be JSON"
    ),
    Call("deep lists", b"[" * DEEP + b"]" * DEEP, message="must be JSON"),
    Call("deep objects", b'{"a":' * 9000 + b"1" + b"}" * 9000, message="must be JSON|and nothing else"),
    Call("no UTF-8", b'{"data": "\xff"}', message="must be JSON"),
    Call("UTF-16", json.dumps(body(START, FORM)).encode("utf-16"), expected="right"),
    Call("too long", b" " * 70_000, message="more than the 64 KB"),
    Call("as a form", b"fn_index=3", message="content type", kind="application/x-www-form-urlencoded"),
    Call("as text", json.dumps(body(START, FORM)).encode(), message="content type", kind="text/plain"),
    Call("multipart", b"--a\r\n\r\n--a--", message="content type", kind="multipart/form-data; boundary=a"),
    of("a list", [1, 2], "and nothing else"),
    of("a number", 3, "and nothing else"),
    of("null", None, "and nothing else"),
    of("no data", {"fn_index": 3, "session_hash": PAGE}, "a list of 11 values"),
    of("an unknown key", body(START, FORM) | {"request": {}}, "and nothing else"),
    of("an event of Gradio's own", body(START, FORM) | {"event_id": "x"}, "and nothing else"),
    of("batched", body(START, FORM) | {"batched": True}, "and nothing else"),
    of("data as an object", body(START, FORM) | {"data": {"0": 1}}, "a list of 11 values"),
    of("one value too few", body(START, FORM[1:]), "a list of 11 values"),
    of("one value too many", body(START, (*FORM, 1)), "a list of 11 values"),
    *(
        of(f"function {n}", body(START, FORM) | {"fn_index": n}, "names no")
        for n in (99, -1, "3", 3.0, None, True, [3])
    ),
    *(
        of(f"session {str(name)[:9]}", body(START, FORM, session=name), "letters and digits|must be a text")
        for name in (None, "", "a", "x" * 65, "../../etc", 12345678, ["page12345"], "página123", "a b c d e")
    ),
    of("an event as a list", body(SAMPLE, [], event=[1]), "event_data must be"),
    of("an event with a file", body(SAMPLE, [], event={"number": FILE}), "event_data must be"),
    of("an event of many values", body(SAMPLE, [], event={str(n): n for n in range(9)}), "event_data must be"),
    of("a sample by name", body(SAMPLE, [], event={"number": "chelsea.png"}), "there is no sample"),
    of("a sample that is not there", body(SAMPLE, [], event={"number": 10**9}), "there is no sample"),
    of("no sample", body(SAMPLE, []), "event_data must be"),
    of("an event where there is none", body(START, FORM, event={"number": 0}), "event_data must be"),
    of("an upload that is none", body(UPLOAD, [], event={"upload": "../../etc/passwd"}), "did not arrive"),
    of("an upload by number", body(UPLOAD, [], event={"upload": 1}), "did not arrive"),
    of("an upload of dunder name", body(UPLOAD, [], event={"__class__": "x"}), "did not arrive"),
    of("a trigger that is no number", body(START, FORM) | {"trigger_id": "x"}, "trigger_id must be"),
    of("methods unknown to the budget", body(SHOW_USED, ["lime", "x", "fast"]), "other-method cannot hold"),
]
CALLS = VALUES + SHAPES
