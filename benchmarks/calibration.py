"""Measure whether the shares of votes are calibrated: ten exact repeats and the fast estimator, by fresh repeats.

    python benchmarks/calibration.py SHARED [--images 12] [--encoders alexnet,squeezenet] [--fresh 60] [--figures DIR]

SHARED holds `weights/` and `data/VOCdevkit/`. The program prints the expected calibration error, the Brier score of a
fresh vote, the share of pixels with a verdict, how many verdicts the fresh repeats reverse, and the mean share of fresh
votes where the verdict is −1 and +1. `ideal` stands for as many other repeats as there are fresh ones. With `--figures`
it also draws a reliability diagram of each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import repeat_xai as rx
from repeat_xai.metrics import calibration
from repeat_xai.output.figures import reliability

ENCODERS = {
    "alexnet": ("torchvision:alexnet", "alexnet_features.safetensors"),
    "squeezenet": ("torchvision:squeezenet1_1", "squeezenet1_1.safetensors"),
}
METHODS = {
    "exact": rx.Repeat(estimator="exact", repeats=10),
    "fast": rx.Repeat(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--images", type=int, default=12)
    parser.add_argument("--encoders", default="alexnet,squeezenet")
    parser.add_argument("--fresh", type=int, default=60)
    parser.add_argument("--figures", type=Path)
    options = parser.parse_args()
    voc = options.shared / "data/VOCdevkit/VOC2012"
    names = (voc / "ImageSets/Segmentation/val.txt").read_text().split()[::5][: options.images]
    many = rx.Repeat(estimator="exact", repeats=options.fresh)
    columns = ("error", "Brier", "decided", "flips", "f at −1", "f at +1")
    print(f"{'encoder':12}{'stated by':11}" + "".join(f"{column:>9}" for column in columns))
    for chosen in options.encoders.split(","):
        name, file = ENCODERS[chosen]
        encoder = rx.load_encoder(name, weights=options.shared / "weights" / file)
        images = [rx.load_image(voc / f"JPEGImages/{name}.jpg", encoder, protocol="paper") for name in names]
        fresh = list(many.stream(encoder, images, seed=1))
        for kind, method in {**METHODS, "ideal": many}.items():
            calibrated = calibration(list(method.stream(encoder, images, seed=0)), fresh)
            low, high = (f"{share:.3f}" if share is not None else "–" for share in calibrated.held)
            print(
                f"{chosen:12}{kind:11}{calibrated.error:9.4f}{calibrated.brier:9.4f}{calibrated.decided:9.3f}{calibrated.flips:9.5f}"
                f"{low:>9}{high:>9}",
                flush=True,
            )
            if options.figures:
                reliability(calibrated).savefig(options.figures / f"reliability_{chosen}_{kind}.png", dpi=110)


if __name__ == "__main__":
    main()
