"""The errors of this package, each in one line that says what is wrong and what to do."""

import difflib
import math
import unicodedata
from collections.abc import Iterable
from numbers import Integral, Real

MEMORY_WORDS = ("out of memory", "allocate memory", "alloc_failed", "bad_alloc", "bad allocation")
"""Words in the messages of errors that mean too little memory but have no class of their own."""

MAX_COUNT = 10_000_000
"""Default limit of masks, repeats, images and everything else that is counted."""
MAX_SHOWN_LETTERS = 60
"""Number of letters of a value that an error message shows."""

BREAKING_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode categories of letters that break a line, control a terminal or cannot be written, as in some file names."""


class RepeatError(Exception):
    """Base class of all errors that this package raises on purpose; the message is one line."""

    def __str__(self) -> str:
        return in_one_line(super().__str__())


class ImageError(RepeatError):
    """An image cannot be read or explained."""


class EncoderError(RepeatError):
    """An encoder cannot be found, loaded or used."""


class ConfigurationError(RepeatError, ValueError):
    """An argument or an option has a value that makes no sense."""


class OutputError(RepeatError):
    """A result cannot be written or read back."""


MAX_REASON_LETTERS = 400
"""Number of characters of another library's message that are quoted."""


def reason(error: BaseException) -> str:
    """Return the first line of another library's error, without letters that would control a terminal.

    >>> reason(ValueError("no such layer\\nand a long explanation")), reason(KeyError())
    ('no such layer', 'KeyError')
    """
    line = (_words(error).strip() or type(error).__name__).splitlines()[0][:MAX_REASON_LETTERS]
    return "".join(letter if letter.isprintable() else " " for letter in line)


def in_one_line(text: str) -> str:
    r"""Return a text in which every letter that would break the line or control a terminal is escaped.

    >>> print(in_one_line("a\nb\x1b[31m 猫.png"))
    a\nb\x1b[31m 猫.png
    """
    return "".join(
        letter.encode("unicode_escape").decode() if unicodedata.category(letter) in BREAKING_CATEGORIES else letter
        for letter in text
    )


MAX_LISTED_NAMES = 8
"""An error lists all known names if there are no more than this, else those spelled most like the unknown one."""

MIN_SIMILARITY = 0.7
"""Share of letters that two spellings must have in common to count as near: difflib's ratio."""


def choose(name: str, value: object, known: Iterable[str]) -> None:
    """Raise a ConfigurationError unless a value is one of the known names.

    Few known names are listed in the error. Of many, the nearest in spelling are named, where there are any.

    >>> choose("votes", "many", ("weighted", "binary"))
    Traceback (most recent call last):
    repeat_xai.errors.ConfigurationError: unknown votes 'many'; choose one of: weighted, binary
    >>> choose("number", "thre", "one two three four five six seven eight nine".split())
    Traceback (most recent call last):
    repeat_xai.errors.ConfigurationError: unknown number 'thre'; did you mean three?
    """
    names = tuple(known)
    if value not in names:
        near = nearest(str(value), names) if len(names) > MAX_LISTED_NAMES else []
        advice = f"did you mean {' or '.join(near)}?" if near else f"choose one of: {', '.join(names)}"
        raise ConfigurationError(f"unknown {name} '{value}'; {advice}")


def nearest(value: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are spelled much like a value: at most three, the most similar first.

    Of names that are equally similar, the one that comes first among the known is first.

    >>> nearest("rseize", ("resize", "crop", "normalise"))
    ['resize']
    """
    matcher, ratios = difflib.SequenceMatcher(b=value), {}
    for name in known:
        matcher.set_seq1(name)
        ratios[name] = matcher.ratio() if matcher.quick_ratio() > MIN_SIMILARITY else 0.0
    ranked = sorted(ratios, key=lambda name: -ratios[name])[:3]
    return [name for name in ranked if ratios[name] > MIN_SIMILARITY]


def at_least(name: str, value: object, least: int, most: int = MAX_COUNT) -> None:
    """Raise a ConfigurationError unless a value is a whole number from `least` to `most`.

    The default of `most` is more than any machine has the time or the memory for.

    >>> at_least("masks", 0, 1)
    Traceback (most recent call last):
    repeat_xai.errors.ConfigurationError: masks must be a whole number of at least 1, not 0
    >>> at_least("masks", 10**8, 1)
    Traceback (most recent call last):
    repeat_xai.errors.ConfigurationError: masks must be at most 10,000,000, not 100000000
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ConfigurationError(f"{name} must be a whole number of at least {least}, not {shown(value)}")
    if int(value) > most:
        raise ConfigurationError(f"{name} must be at most {most:,}, not {shown(value)}")


def expect_number(name: str, value: object) -> None:
    """Raise a ConfigurationError unless a value is a finite number.

    >>> expect_number("keep", "half")
    Traceback (most recent call last):
    repeat_xai.errors.ConfigurationError: keep must be a number, not 'half'
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ConfigurationError(f"{name} must be a number, not {shown(value)}")


def shown(value: object) -> str:
    """Return a value as an error message shows it: in one line of limited length.

    >>> shown("auto"), shown(10**5000)
    ("'auto'", 'a number of more than 60 digits')
    """
    if (
        isinstance(value, int) and abs(value) >= 10**MAX_SHOWN_LETTERS
    ):  # Python refuses to write out thousands of digits
        return f"a number of more than {MAX_SHOWN_LETTERS} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_SHOWN_LETTERS else f"{text[: MAX_SHOWN_LETTERS - 1]}…"


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error means too little memory, whichever library raised it.

    >>> lacks_memory(RuntimeError("CUDA error: out of memory")), lacks_memory(RuntimeError("no such layer"))
    (True, False)
    """
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or any(words in _words(error).lower() for words in MEMORY_WORDS)


def _words(error: BaseException) -> str:
    """Return an error's text, or nothing if the error's own code for it fails."""
    try:
        return str(error)
    except Exception:
        return ""
