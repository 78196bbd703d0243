"""A folder with the files that the documentation names: photos of scikit-image, and small or untrained networks."""

import json
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import open_clip
import PIL.Image
import pytest
import safetensors.torch
import torch
import torchvision
from skimage import data
from tiny_models import models
from tiny_two_towers import OPEN_CLIP, saved
from torch import nn

import repeat_xai as rx
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.experiments.executors.executor_names import EXECUTORS
from repeat_xai.methods.method_names import METHODS
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.metrics import METRICS

PHOTOS = {"chelsea": data.chelsea, "coffee": data.coffee, "rocket": data.rocket, "astronaut": data.astronaut}
CLASSES = ("AnnualCrop", "Forest", "River", "SeaLake")
COMMIT = "0" * 40
REGISTRIES = (METHODS, METRICS, THRESHOLDS, KERNELS, DATASETS, EXECUTORS)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """Make every file that a snippet may use, in a folder of its own."""
    root = tmp_path_factory.mktemp("docs")
    pictures(root)
    datasets(root / "DATA")
    networks(root)
    return root


@pytest.fixture
def restored_registries():
    """Remove what a page registers after its test, so that other pages do not know it."""
    before = [dict(registry) for registry in REGISTRIES]
    yield
    for registry, names in zip(REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(names)


@pytest.fixture
def prepared_folder(files, restored_registries, tmp_path, monkeypatch):
    """Run the test in a folder of its own, in which every file that snippets name is found."""
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hf/hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    published = {"laion2b_s34b_b79k": {"file": "my_clip.pt"}}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-32", OPEN_CLIP["tiny-clip"])
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "ViT-B-32", published)
    for resolution in ("SCREEN_DPI", "PRINT_DPI"):
        monkeypatch.setattr(f"repeat_xai.output.results_folder.{resolution}", 30)
    demo = import_module("repeat_xai.cli.demo")  # it has no options for its budget
    monkeypatch.setattr(demo, "Repeat", lambda: rx.Repeat(base=rx.Relax(masks=9), repeats=2))
    monkeypatch.setattr(demo, "load_encoder", lambda name: rx.load_encoder(name, size=32))
    for module in [module for name, module in sys.modules.items() if name.startswith("repeat_xai.")]:
        if hasattr(module, "PAPER_SIDE"):
            monkeypatch.setattr(module, "PAPER_SIDE", 32)


def pictures(root: Path) -> None:
    """Write the photos that the pages name."""
    PIL.Image.fromarray(data.chelsea()).save(root / "cat.jpg")
    PIL.Image.fromarray(data.coffee()).save(root / "query.jpg")
    for folder, number in (("photos", 0), ("known", 1)):
        (root / folder).mkdir()
        for name in PHOTOS:
            PIL.Image.fromarray(crops(160)[f"{name}{number}"]).save(root / folder / f"{name}.png")
    PIL.Image.fromarray((data.moon()[:256, :256].astype(np.uint16) << 8) + 128).save(root / "scan.png")
    stack = np.stack([data.moon()[:320, :320]] * 4 + [data.camera()[:320, :320]] * 2).astype(np.uint16) * 40
    np.save(root / "scene.npy", stack)


def crops(side: int) -> dict[str, np.ndarray]:
    """Return four crops of each photo, each at another place."""
    return {
        f"{name}{n}": photo()[20 * n : 20 * n + side, 30 * n : 30 * n + side]
        for name, photo in PHOTOS.items()
        for n in range(4)
    }


def datasets(root: Path) -> None:
    """Write sixteen pictures of each dataset, laid out as torchvision lays them out."""
    voc = root / "VOCdevkit/VOC2012"
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (voc / folder).mkdir(parents=True)
    (root / "coco/train2017").mkdir(parents=True)
    (root / "coco/annotations").mkdir()
    raw, small = root / "FashionMNIST/raw", root / "cifar10"
    raw.mkdir(parents=True)
    small.mkdir()
    tiny = {name: np.asarray(PIL.Image.fromarray(crop).resize((32, 32))) for name, crop in crops(160).items()}
    for number, (name, crop) in enumerate(crops(160).items()):
        picture = PIL.Image.fromarray(crop)
        for path in (voc / f"JPEGImages/{name}.jpg", root / f"coco/train2017/{name}.jpg"):
            picture.save(path)
        mask = np.zeros((160, 160), np.uint8)
        mask[40:120, 40:120] = 8
        PIL.Image.fromarray(mask).save(voc / f"SegmentationClass/{name}.png")
        land = root / f"eurosat/2750/{CLASSES[number % 4]}"
        land.mkdir(parents=True, exist_ok=True)
        texture = (data.brick, data.grass, data.gravel, data.moon)[number % 4]()[16 * number :, 16 * number :][:64, :64]
        PIL.Image.fromarray(texture).convert("RGB").save(land / f"{CLASSES[number % 4]}_{number}.jpg")
    (voc / "ImageSets/Segmentation/val.txt").write_text("\n".join(crops(160)))
    box = {"bbox": [40, 40, 80, 80], "segmentation": [[40, 40, 120, 40, 120, 120, 40, 120]], "area": 6400, "iscrowd": 0}
    notes = {
        "images": [{"id": n, "file_name": f"{name}.jpg", "height": 160, "width": 160} for n, name in enumerate(tiny)],
        "annotations": [{"id": n, "image_id": n, "category_id": 1} | box for n in range(len(tiny))],
        "categories": [{"id": 1, "name": "object"}],
    }
    (root / "coco/annotations/instances_train2017.json").write_text(json.dumps(notes))
    images, labels = np.stack(list(tiny.values())), np.arange(len(tiny)) % 10
    for part in ("train", "t10k"):
        grey = images[:, 2:30, 2:30].mean(3).astype(np.uint8)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(
            np.array([2051, len(grey), 28, 28], ">i4").tobytes() + grey.tobytes()
        )
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(
            np.array([2049, len(grey)], ">i4").tobytes() + bytes(labels.tolist())
        )
    np.savez(small / "clean.npz", images=images, labels=labels)
    np.savez(
        small / "poisoned_tap.npz",
        images=np.clip(images.astype(int) + np.indices(images.shape).sum(0) % 9, 0, 255).astype(np.uint8),
    )
    np.save(small / "ar_coefficients.npy", np.random.default_rng(0).dirichlet(np.ones(9), (10, 3)).reshape(10, 3, 3, 3))


def networks(root: Path) -> None:
    """Write untrained networks where the snippets look for weights, and a hub's cache with a tiny DINOv2 in it."""
    import timm

    torch.manual_seed(0)
    alexnet = torchvision.models.alexnet()
    features = {name: tensor for name, tensor in alexnet.state_dict().items() if name.startswith("features")}
    safetensors.torch.save_file(features, root / "alexnet_features.safetensors")
    vit = timm.create_model("vit_small_patch14_dinov2", img_size=224, num_classes=0)
    safetensors.torch.save_file({k: v.half() for k, v in vit.state_dict().items()}, root / "backbone.safetensors")
    hub = root / "torch/hub/checkpoints"
    hub.mkdir(parents=True)
    file = torchvision.models.ResNet50_Weights.DEFAULT.url.rpartition("/")[2]
    torch.save(torchvision.models.resnet50().state_dict(), hub / file)
    torch.onnx.export(
        small_network().eval(),
        (torch.zeros(2, 3, 32, 32),),
        root / "encoder.onnx",
        input_names=["images"],
        output_names=["codes"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        dynamo=True,
        verbose=False,
    )
    model, processor = models()["dinov2"]
    snapshot = root / "hf/hub/models--facebook--dinov2-small/snapshots" / COMMIT
    for folder in (root / "my/folder", snapshot):
        model().save_pretrained(folder)
        processor.save_pretrained(folder)
    clip = root / "hf/hub/models--openai--clip-vit-base-patch32/snapshots" / COMMIT
    for folder in (root / "my/clip", clip):
        folder.parent.mkdir(parents=True, exist_ok=True)
        saved("clip", folder)
    for cached in (snapshot, clip):
        (cached.parents[1] / "refs").mkdir()
        (cached.parents[1] / "refs/main").write_text(COMMIT)
    torch.save(open_clip.model.CLIP(**OPEN_CLIP["tiny-clip"]).state_dict(), root / "my_clip.pt")


def small_network(channels: int = 3) -> nn.Module:
    """Return a network in place of a reader's own module: it gives feature maps, as most backbones do."""
    return nn.Sequential(nn.Conv2d(channels, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU())


def pytest_terminal_summary(terminalreporter) -> None:
    """Print how many blocks of which kind were run or checked."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for kind, count in report.user_properties:
            counts[kind] += count if kind.startswith("docs: ") else 0
    if counts:
        terminalreporter.write_line(
            ", ".join(f"{count} {kind.removeprefix('docs: ')}" for kind, count in counts.items() if count)
        )
