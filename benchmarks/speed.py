"""Measure seconds per image of REPEAT at the paper's budget, of the published loop, and of the encoder alone.

    python benchmarks/speed.py --encoders efficientnet_lite0 --out speed

All are measured on one machine in one run, with the same weights. These are random where none come with the package,
which does not change the speed.

    published    the loop of relax-xai in batches of 10 masks and float32, as the authors' notebook calls it; on a CPU
                 in a process of its own, since what ran before it changes how the allocator serves it
    vectorised   plain torch: all masks of a batch at once, in half precision and channels-last on a GPU
    exact        Repeat(estimator="exact") on a stream of images
    fast         Repeat() on a stream of images, with an automatic budget unless `--budget` is given
    alone        nothing but the encoder, compiled or by ONNX Runtime, on as many images as `exact` makes calls

Times are medians over `--rounds`. The program prints a table and writes OUT.json, and OUT.png with seconds against the
number of masks and against the image size.
"""

import argparse
import json
import platform
import statistics
import time
from multiprocessing import get_context
from pathlib import Path

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from relax_xai.relax import RELAX
from skimage import data

import repeat_xai as rx
from repeat_xai.encoders import onnx_export
from repeat_xai.encoders.torch_encoder import full_precision
from repeat_xai.engine.batches import CHUNKS
from repeat_xai.engine.runtimes import fastest_convolutions

REPEATS, MASKS = 10, 1000
PHOTOS = (data.chelsea, data.coffee, data.rocket, data.astronaut)


def load(name, device, size, **options):
    """Return an encoder, with random weights unless they come with the package."""
    weights = None if name == "efficientnet_lite0" else "random"
    return rx.load_encoder(name, weights=weights, device=device, size=size, **options)


def images_for(encoder, count):
    """Return images made of four photos in turn."""
    return [rx.load_image(PHOTOS[i % len(PHOTOS)](), encoder) for i in range(count)]


def seconds(job, device):
    """Return the wall time of a job, until the device has done all of it."""
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    job()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def published(encoder, image, *, masks, repeats):
    """Run the authors' loop: one run of RELAX after another, each cut at its mean."""
    pixels = image.pixels[None].to(encoder.device)
    p = 0
    with torch.no_grad():
        for _ in range(repeats):
            relax = RELAX(pixels, encoder.module, batch_size=10, num_batches=masks // 10)
            relax()
            importance = relax.importance
            p = p + (importance >= importance.mean()) * importance / importance.max() / repeats
    return (p * (1 - p)).cpu()


def published_alone(name, *, masks, repeats):
    """Return the seconds of the authors' loop in a process of its own, on the CPU."""
    with get_context("spawn").Pool(1) as processes:
        return processes.apply(_published_in_this_process, (name, masks, repeats))


def _published_in_this_process(name, masks, repeats):
    encoder = load(name, "cpu", None)
    encoder.module.to(memory_format=torch.contiguous_format)
    image = images_for(encoder, 1)[0]
    return seconds(lambda: published(encoder, image, masks=masks, repeats=repeats), "cpu")


def vectorised(encoder, image, *, masks, repeats):
    """Run what an experienced user of torch would write in twenty lines."""
    batch = 250 if encoder.device.type == "cuda" else 20
    module = encoder.module.half() if encoder.device.type == "cuda" else encoder.module
    pixels = image.pixels[None].to(encoder.device, next(module.parameters()).dtype)
    size, p = pixels.shape[2:], 0
    with torch.no_grad():
        whole = module(pixels)
        for _ in range(repeats):
            total = weight = 0
            for _ in range(masks // batch):
                grids = (torch.rand(batch, 1, 7, 7, device=pixels.device) < 0.5).to(pixels.dtype)
                large = F.pad(F.interpolate(grids, size, mode="bilinear"), (3, 3, 3, 3), mode="reflect")
                down, right = torch.randint(0, 7, (2,)).tolist()
                kept = large[:, :, down : down + size[0], right : right + size[1]]
                copies = (pixels * kept).contiguous(memory_format=torch.channels_last)
                similarity = F.cosine_similarity(whole.float(), module(copies).float())
                total = total + torch.einsum("n,nhw->hw", similarity, kept[:, 0].float())
                weight = weight + kept[:, 0].float().sum(0)
            importance = total / weight
            p = p + (importance >= importance.mean()) * importance / importance.max() / repeats
    return (p * (1 - p)).cpu()


def alone(encoder, *, calls, batch):
    """Return a job that runs nothing but the encoder in its fastest form, which is ready to be timed."""
    height, width = encoder.preprocessing.size
    if encoder.device.type == "cpu":
        pixels = torch.randn(batch, 3, height, width)
        session = onnx_export.exported(encoder.module, {"images": pixels})

        def run(pixels):
            session({"images": pixels})

    else:
        module = encoder.module.half()
        pixels = torch.randn(batch, 3, height, width, device="cuda", dtype=torch.float16)
        pixels = pixels.contiguous(memory_format=torch.channels_last)
        run = torch.compile(module, dynamic=False)

    def job():
        with torch.no_grad(), full_precision(), fastest_convolutions(pixels.dtype):
            for _ in range(-(-calls // batch)):
                run(pixels)

    with torch.no_grad(), full_precision(), fastest_convolutions(pixels.dtype):
        run(pixels)
    return job


def ours(encoder, images, **options):
    """Return seconds and encoder calls per image over a stream, and how the encoder was run."""
    started = time.perf_counter()
    records = [explanation.provenance for explanation in rx.Repeat(**options).stream(encoder, images, seed=0)]
    calls = sum(record["encoder_calls"] for record in records) / len(records)
    return (time.perf_counter() - started) / len(images), calls, records[0]["ran"]


def measure(name, options):
    """Return the seconds per image of every competitor on one encoder, as medians over rounds."""
    device, batch = options.device, CHUNKS[options.device]
    runtime = "compiled" if device == "cuda" else "onnxruntime"
    plain, other = load(name, device, None), load(name, device, None)
    plain.module.to(memory_format=torch.contiguous_format)
    engine = load(name, device, None, runtime=runtime)
    images = images_for(engine, options.images)
    job = alone(load(name, device, None), calls=REPEATS * MASKS + 1, batch=batch)
    exact = {"estimator": "exact", "repeats": REPEATS, "base": rx.Relax(masks=MASKS)}
    fast = {"budget": options.budget or "auto"}
    _, _, ran = ours(engine, images[:1], **fast)
    ours(engine, images[:1], **exact)
    few = {"masks": MASKS, "repeats": options.repeats}
    share = options.repeats / REPEATS
    jobs = {
        "published": lambda: (
            (
                published_alone(name, **few)
                if device == "cpu"
                else seconds(lambda: published(plain, images[0], **few), device)
            )
            / share
        ),
        "vectorised": lambda: seconds(lambda: vectorised(other, images[0], **few), device) / share,
        "alone": lambda: seconds(job, device),
        "exact": lambda: ours(engine, images[: options.exact_images], **exact)[0],
        "fast": lambda: ours(engine, images, **fast)[0],
    }
    times = {key: [] for key in jobs}
    for _ in range(options.rounds):
        for key, run in jobs.items():
            times[key].append(run())
    median = {key: statistics.median(values) for key, values in times.items()}
    return {
        "seconds": median,
        "all": times,
        "ran": ran,
        "fast_calls": ours(engine, images[:4], **fast)[1],
        "exact_share_of_alone": median["alone"] / median["exact"],
        "exact_times_published": median["published"] / median["exact"],
        "fast_times_published": median["published"] / median["fast"],
    }


def curves(name, options):
    """Return seconds per image against the number of masks of a repeat, and against the side of the image."""
    points = {"masks": [], "side": []}
    engine = load(name, options.device, None)
    image = images_for(engine, 1)
    ours(engine, image, budget=512)
    for masks in (250, 500, 1000, 2000):
        base = rx.Relax(masks=masks)
        exact = ours(engine, image, estimator="exact", repeats=3, base=base)[0] * REPEATS / 3
        points["masks"].append([masks, exact, ours(engine, image, base=base, budget=options.budget or 640)[0]])
    for side in (128, 224, 320, 448):
        engine = load(name, options.device, side)
        image = images_for(engine, 1)
        ours(engine, image, budget=512)
        exact = ours(engine, image, estimator="exact", repeats=1, base=rx.Relax(masks=MASKS))[0] * REPEATS
        points["side"].append([side, exact, ours(engine, image, budget=options.budget or 640)[0]])
    return points


def draw(results, path):
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, key, label in zip(
        figure.subplots(1, 2), ("masks", "side"), ("masks per repeat", "pixels per side"), strict=True
    ):
        for number, (name, result) in enumerate(results.items()):
            x, exact, fast = zip(*result["curves"][key], strict=True)
            axes.plot(x, exact, "o-", color=f"C{number}", label=f"{name}, exact")
            axes.plot(x, fast, "s--", color=f"C{number}", label=f"{name}, fast")
        axes.set(xlabel=label, ylabel="seconds per image", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoders", nargs="+", default=["efficientnet_lite0"])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--images", type=int, help="number of images in the stream of `fast`")
    parser.add_argument("--exact-images", type=int, help="number of images in the stream of `exact`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=int, help="number of masks of `fast`; automatic unless given")
    parser.add_argument(
        "--repeats",
        type=int,
        help="repeats of `published` and `vectorised` that are run; the time of ten is in proportion",
    )
    parser.add_argument("--curves", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, default=Path("speed"))
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    options.images = options.images or (64 if on_gpu else 4)
    options.exact_images = options.exact_images or (8 if on_gpu else 1)
    options.repeats = options.repeats or (REPEATS if on_gpu else 1)
    machine = torch.cuda.get_device_name() if on_gpu else f"{platform.machine()}, {torch.get_num_threads()} threads"
    results = {}
    for name in options.encoders:
        results[name] = measure(name, options)
        if options.curves:
            results[name]["curves"] = curves(name, options)
        took = results[name]["seconds"]
        print(f"{name} on {machine}, torch {torch.__version__}, {results[name]['ran']}")
        for key, value in took.items():
            print(f"  {key:11} {value:9.4f} s per image   {took['published'] / value:7.1f} × published")
        print(f"  exact at {results[name]['exact_share_of_alone']:.2f} of the encoder alone", flush=True)
    options.out.with_suffix(".json").write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    if options.curves:
        draw(results, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
