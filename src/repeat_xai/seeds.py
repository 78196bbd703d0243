"""Randomness is an argument: every stream is named by what it is for, never by when it is drawn.

A result then depends neither on batch size, nor on order, nor on which machine made it.
"""

from __future__ import annotations

import hashlib

import numpy as np

from repeat_xai.errors import at_least

WORDS_PER_COUNT = 4
"""Philox-4x64 turns each value of its counter into four 64-bit words."""

SEEDS = 2**64
"""As many as a stored row has room for."""


def expect_seed(seed: object) -> None:
    """Refuse what is no seed: a whole number from 0 to 2⁶⁴ − 1."""
    at_least("seed", seed, 0, SEEDS - 1)


def fold(seed: int, *parts: int | str) -> int:
    """A new seed for the part of the work that `parts` name.

    >>> fold(0, "repeat", 1) == fold(0, "repeat", 1), fold(0, "repeat", 1) == fold(0, "repeat", 2)
    (True, False)
    """
    expect_seed(seed)
    text = repr((int(seed), *parts)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def uniforms(seed: int, *, start: int, stop: int, width: int) -> np.ndarray:
    """Rows `start` to `stop` of an endless table of uniforms on [0, 1), `width` columns wide.

    A row is found by its number alone, so any slice of the table is the same however the rest is cut.
    """
    counts = -(-width // WORDS_PER_COUNT)
    bits = np.random.Philox(key=seed, counter=start * counts)
    words = bits.random_raw((stop - start) * counts * WORDS_PER_COUNT)
    return (words.reshape(stop - start, -1)[:, :width] >> np.uint64(11)) * 2.0**-53
