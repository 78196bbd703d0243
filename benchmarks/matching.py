"""Measure how often `match` finds the right partner of a part, with real encoders and photos.

B is a mirrored, a shifted and an enlarged copy of A, so the true partner of each part of A is known. Of the 12 parts of
A that matter most for the match, the program counts those whose true partner is ranked first, and among the first
three. It also counts the matches that are called certain, for these and for photos of two unlike scenes.

    python benchmarks/matching.py SHARED --encoders squeezenet --images 3 --masks 256 --out matching.json

SHARED holds `weights/` and `data/VOCdevkit/` as the tests expect them. It prints the lines of a table as they are done.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import PIL.Image
import torch.nn.functional as F

import repeat_xai as rx

ENCODERS = {
    "squeezenet": ("torchvision:squeezenet1_1", "squeezenet1_1.safetensors", None),
    "alexnet": ("torchvision:alexnet", "alexnet_features.safetensors", None),
    "lite0": ("efficientnet_lite0", None, None),
    "vits": ("timm:vit_small_patch14_dinov2", "vit_small_patch14_dinov2.fp16.safetensors", 224),
}
CELLS, SIDE = 7, 32
"""Cells along each side, and pixels along each side of a cell."""
PARTS = 12


def pictures(photo):
    """Return A and its copies as arrays of 224×224 pixels; each copy has a function from a cell to its true partner."""
    large = np.asarray(PIL.Image.open(photo).convert("RGB").resize((9 * SIDE, 9 * SIDE), PIL.Image.Resampling.BICUBIC))
    a = large[SIDE:-SIDE, SIDE:-SIDE]
    inner = PIL.Image.fromarray(a[SIDE:-SIDE, SIDE:-SIDE])
    enlarged = np.asarray(inner.resize((CELLS * SIDE, CELLS * SIDE), PIL.Image.Resampling.BICUBIC))
    scale = CELLS / (CELLS - 2)
    return a, {
        "mirrored": (a[:, ::-1].copy(), lambda row, column: (row, CELLS - 1 - column)),
        "shifted": (large[2 * SIDE :, 2 * SIDE :], lambda row, column: (row - 1, column - 1)),
        "enlarged": (enlarged, lambda *cell: tuple(int((place + 0.5 - 1) * scale // 1) for place in cell)),
    }


def strongest_parts(match, partner_of):
    """Return the cells of A with the largest mean importance, of those whose partner lies in B."""
    means = F.adaptive_avg_pool2d(match.a.importance[None], CELLS)[0]
    order = means.flatten().argsort(descending=True, stable=True).tolist()
    cells = [divmod(number, CELLS) for number in order]
    return [cell for cell in cells if all(0 <= place < CELLS for place in partner_of(*cell))][:PARTS]


def places(match, partner_of):
    """Return the rank of the true partner, from 0, for each of the strongest parts of A."""
    ranks = []
    for cell in strongest_parts(match, partner_of):
        partners = [tuple(partner.b) for partner in match.partners_of(cell)]
        ranks.append(partners.index(partner_of(*cell)))
    return ranks


def counts(match, level):
    """Return how many pairs are certain, and how many of them share no part."""
    return [len(match.partners(level)), len(match.strongest(level, CELLS**2))]


def judge(encoder, photos, *, masks, level, seed):
    """Return ranks and numbers of certain matches for each kind of copy, and for each photo with the next one."""
    result = {kind: {"ranks": [], "certain": []} for kind in ("mirrored", "shifted", "enlarged", "unlike")}

    def match(a, b):
        return rx.match(encoder, a, b, method=rx.Repeat(budget=masks), seed=seed, protocol="paper")

    for photo, following in zip(photos, photos[1:] + photos[:1], strict=True):
        a, copies = pictures(photo)
        for kind, (b, partner_of) in copies.items():
            matched = match(a, b)
            result[kind]["ranks"] += places(matched, partner_of)
            result[kind]["certain"].append(counts(matched, level))
        result["unlike"]["certain"].append(counts(match(a, pictures(following)[0]), level))
    return result


def line(short, kind, result):
    """Return a line of the table."""
    ranks, certain = result["ranks"], np.mean(result["certain"], axis=0)
    first, three = (f"{np.mean([rank < k for rank in ranks]):.2f}" if ranks else "–" for k in (1, 3))
    return f"| {short} | {kind} | {first} | {three} | {certain[0]:.0f} | {certain[1]:.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=Path)
    parser.add_argument("--encoders", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    parser.add_argument("--images", type=int, default=3, help="photos: every fifth of VOC's validation set")
    parser.add_argument("--masks", type=int, default=256, help="masks of each photo")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("matching.json"))
    options = parser.parse_args()
    voc = options.shared / "data/VOCdevkit/VOC2012"
    names = (voc / "ImageSets/Segmentation/val.txt").read_text().split()[::5][: options.images]
    photos = [voc / f"JPEGImages/{name}.jpg" for name in names]
    print(f"{len(photos)} photos, {options.masks} + {options.masks} masks; chance: first 0.02, first three 0.06")
    print("| encoder | B | partner first | among the first three | certain pairs of 2,401 | that share no part |")
    results = {}
    for short in options.encoders:
        name, file, size = ENCODERS[short]
        encoder = rx.load_encoder(name, weights=options.shared / "weights" / file if file else None, size=size)
        started = time.perf_counter()
        results[short] = judge(encoder, photos, masks=options.masks, level=options.level, seed=options.seed)
        for kind, result in results[short].items():
            print(line(short, kind, result), flush=True)
        print(f"({time.perf_counter() - started:.0f} s)", flush=True)
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
