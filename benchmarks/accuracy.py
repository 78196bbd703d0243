"""Compare the accuracy of the fast estimator with that of K = 10 exact repeats, on real encoders and photos.

The true p is approximated by the votes of 60 further independent sets of 1,000 masks. The program prints a line for
each encoder and writes a JSON file.

    python benchmarks/accuracy.py SHARED --encoders alexnet squeezenet lite0 vits --images 12 --out accuracy.json

SHARED holds `weights/` and `data/VOCdevkit/` as the tests expect them. It takes ten minutes on a large GPU, and days on
a laptop.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from scipy.stats import spearmanr

import repeat_xai as rx
from repeat_xai.methods.votes import indicator, weights
from repeat_xai.seeds import fold

ENCODERS = {
    "alexnet": ("torchvision:alexnet", "alexnet_features.safetensors", None),
    "squeezenet": ("torchvision:squeezenet1_1", "squeezenet1_1.safetensors", None),
    "lite0": ("efficientnet_lite0", None, None),
    "vits": ("timm:vit_small_patch14_dinov2", "vit_small_patch14_dinov2.fp16.safetensors", 224),
}
REPEATS, FURTHER = 10, 60


def votes(encoder, image, relax, *, seed, sets):
    """Return the weighted votes of independent sets of masks."""
    maps = torch.stack([relax.importance(encoder, image, seed=fold(seed, "set", k)) for k in range(sets)]).cpu()
    return indicator(maps, "mean") * weights(maps, "weighted")


def scores(p, truth):
    """Return the RMSE of p, the RMSE of U and Spearman's ρ of U."""
    u, true_u = p * (1 - p), truth * (1 - truth)
    rank = spearmanr(u.flatten().numpy(), true_u.flatten().numpy()).statistic
    return {
        "rmse_p": (p - truth).square().mean().sqrt().item(),
        "rmse_u": (u - true_u).square().mean().sqrt().item(),
        "spearman_u": float(rank),
    }


def judge(encoder, image, *, seed):
    """Return the scores of ten repeats and of the fast estimator for one image, and its true and stated error."""
    relax = rx.Relax(masks=1000)
    all_votes = votes(encoder, image, relax, seed=seed, sets=REPEATS + FURTHER)
    truth = all_votes[REPEATS:].mean(0)
    noise = (all_votes[REPEATS:].var(0) / FURTHER).mean().item()  # mean square error of the truth itself
    fast = rx.Repeat(base=relax)(encoder, image, seed=seed)
    of_fast = scores(fast.importance.double(), truth)
    return {
        "repeats": scores(all_votes[:REPEATS].mean(0), truth),
        "fast": of_fast,
        "calls": fast.provenance["encoder_calls"],
        "stated": fast.provenance["budget"]["error"],
        "error": max(of_fast["rmse_p"] ** 2 - noise, 0.0) ** 0.5,
    }


def mean(rows, *keys):
    """Return the mean over images of a value, given by its keys in the nested scores."""
    values = []
    for row in rows:
        for key in keys:
            row = row[key]
        values.append(row)
    return sum(values) / len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=Path)
    parser.add_argument("--encoders", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    parser.add_argument("--images", type=int, default=12)
    parser.add_argument(
        "--first", type=int, default=0, help="start at this image of VOC's validation set, of which every fifth is used"
    )
    parser.add_argument("--runtime", default="auto", help="how encoders are run; `compiled` for a long run on a GPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("accuracy.json"))
    options = parser.parse_args()
    voc = options.shared / "data/VOCdevkit/VOC2012"
    names = (voc / "ImageSets/Segmentation/val.txt").read_text().split()[options.first :: 5][: options.images]
    results = {}
    for short in options.encoders:
        name, file, size = ENCODERS[short]
        weights_file = options.shared / "weights" / file if file else None
        encoder = rx.load_encoder(name, weights=weights_file, size=size, runtime=options.runtime)
        started, rows = time.perf_counter(), []
        results[short] = rows
        for photo in names:
            image = rx.load_image(voc / f"JPEGImages/{photo}.jpg", encoder, protocol="paper")
            rows.append(judge(encoder, image, seed=options.seed))
        ten, fast = (" / ".join(f"{mean(rows, who, key):.3f}" for key in rows[0][who]) for who in ("repeats", "fast"))
        print(
            f"{short:10} ten repeats {ten}   fast {fast}   calls {mean(rows, 'calls'):.0f}   "
            f"stated/true error {mean(rows, 'stated') / mean(rows, 'error'):.2f}   "
            f"({len(rows)} images, {time.perf_counter() - started:.0f} s)",
            flush=True,
        )
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
