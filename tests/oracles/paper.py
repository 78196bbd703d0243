"""The paper's equations as slow loops, one pixel and one mask at a time, to compare the package with."""

import math

import numpy as np


def cosine(a, b):
    """Return the cosine of the angle between two codes."""
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def relax_importance(similarities, masks, normalise="mask_sum"):
    """Return RELAX's importance: equation 1 of appendix A (`count`), or the authors' division by Σ M (`mask_sum`)."""
    count, height, width = masks.shape
    importance = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            total = sum(similarities[n] * masks[n, i, j] for n in range(count))
            divisor = sum(masks[n, i, j] for n in range(count)) if normalise == "mask_sum" else count
            importance[i, j] = total / divisor
    return importance


def relax_uncertainty(similarities, masks, importance, normalise_uncertainty="mask_sum"):
    """Return RELAX's uncertainty: equation 2 of appendix A with its divisor named."""
    count, height, width = masks.shape
    uncertainty = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            total = sum((similarities[n] - importance[i, j]) ** 2 * masks[n, i, j] for n in range(count))
            divisor = {"sum": 1, "count": count, "mask_sum": sum(masks[n, i, j] for n in range(count))}
            uncertainty[i, j] = total / divisor[normalise_uncertainty]
    return uncertainty


def repeat(maps, threshold, votes="weighted"):
    """Return p, U and the share of votes: equations 3 to 6 (indicator, weight, weighted mean, Bernoulli variance)."""
    repeats, height, width = maps.shape
    p, share = np.zeros((height, width)), np.zeros((height, width))
    for k in range(repeats):
        cut, maximum = threshold(maps[k]), maps[k].max()
        for i in range(height):
            for j in range(width):
                if maps[k, i, j] >= cut:
                    p[i, j] += (maps[k, i, j] / maximum if votes == "weighted" else 1) / repeats
                    share[i, j] += 1 / repeats
    return p, p * (1 - p), share
