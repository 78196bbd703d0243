"""Functions that make random numbers from a seed and a name, never from a hidden state.

Every stream of random numbers is named by what it is for: seed, image, repeat. The random numbers then depend neither
on the batch size, nor on the order of the images, nor on the machine.
"""

from __future__ import annotations

import hashlib

import numpy as np

from repeat_xai.errors import at_least

WORDS_PER_COUNT = 4
"""Number of 64-bit words that Philox-4x64 makes from each value of its counter."""

SEEDS = 2**64
"""Number of valid seeds: a stored row keeps its seed in 64 bits."""


def expect_seed(seed: object) -> None:
    """Raise a ConfigurationError unless this is a seed: a whole number from 0 to 2⁶⁴ − 1."""
    at_least("seed", seed, 0, SEEDS - 1)


def fold(seed: int, *parts: int | str) -> int:
    """Return a new seed for the part of the work that `parts` name.

    Different parts give unrelated seeds. The words among the parts decide the random numbers, so renaming one changes
    all results that depend on it.

    >>> fold(0, "repeat", 1) == fold(0, "repeat", 1), fold(0, "repeat", 1) == fold(0, "repeat", 2)
    (True, False)
    """
    expect_seed(seed)
    text = repr((int(seed), *parts)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def uniforms(seed: int, *, start: int, stop: int, width: int) -> np.ndarray:
    """Return rows `start` to `stop` of an endless table of uniform random numbers on [0, 1), `width` columns wide.

    Each row is computed from its number alone, so it does not matter in which slices the table is read.
    """
    counts = -(-width // WORDS_PER_COUNT)  # values of the counter for each row, rounded up
    bits = np.random.Philox(key=seed, counter=start * counts)
    words = bits.random_raw((stop - start) * counts * WORDS_PER_COUNT)
    return (words.reshape(stop - start, -1)[:, :width] >> np.uint64(11)) * 2.0**-53
