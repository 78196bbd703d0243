"""On a GPU the same masks give the same maps as on the CPU, whatever the chunk, and nothing is left changed."""

import pytest
import torch
from scipy.stats import spearmanr
from skimage import data
from torch import nn

import repeat_xai as rx

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def both():
    name = "torchvision:resnet18"
    return [rx.load_encoder(name, weights="random", device=device, precision="float32") for device in ("cpu", "cuda")]


def test_the_gpu_agrees_with_the_cpu(both):
    on_cpu, on_gpu = both
    image = rx.load_image(data.chelsea(), on_cpu)
    relax = rx.Relax(masks=100)
    assert on_gpu.device.type == "cuda"
    a, b = relax(on_cpu, image, seed=0), relax(on_gpu, image, seed=0)
    torch.testing.assert_close(a.importance, b.importance, atol=1e-5, rtol=0)
    assert torch.corrcoef(torch.stack((a.importance.flatten(), b.importance.flatten())))[0, 1] > 0.999


def test_chunks_and_repetition_on_the_gpu(both):
    encoder = both[1]
    image = rx.load_image(data.chelsea(), encoder)
    whole, again, parts = (rx.Relax(masks=300, chunk=c)(encoder, image, seed=0) for c in (256, 256, 50))
    assert torch.equal(whole, again)
    torch.testing.assert_close(whole, parts, atol=1e-6, rtol=0)
    assert rx.map_to_photo(whole.cuda(), image.photo).device.type == "cuda"


def test_repeat_with_every_threshold_on_the_gpu(both):
    encoder = both[1]
    image = rx.load_image(data.chelsea(), encoder)
    for threshold in ("mean", "otsu", "triangle", "li"):
        found = rx.Repeat(estimator="exact", base=rx.Relax(masks=50), repeats=3, threshold=threshold)(
            encoder, image, seed=0
        )
        assert found.importance.device.type == "cpu"
        assert 0 < found.vote_share.mean() < 1


def test_global_state_is_left_as_found():
    flags = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    state = torch.cuda.get_rng_state()
    encoder = rx.load_encoder("timm:resnet18", weights="random", device="cuda")
    rx.Relax(masks=5)(encoder, rx.load_image(data.chelsea(), encoder), seed=0)
    assert flags == (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)
    assert torch.equal(state, torch.cuda.get_rng_state())


def test_a_module_on_the_gpu_is_not_copied():
    module = torch.nn.Linear(2, 2, device="cuda")
    assert rx.load_encoder(module, device="cuda").module is module


@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_a_gpu_with_little_memory_only_takes_longer(both, estimator):
    encoder = both[1]
    image = rx.load_image(data.chelsea(), encoder)
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=600), repeats=2, budget=512)
    plenty = method(encoder, image, seed=0)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 1e9) / total)
    try:
        little = rx.Repeat(estimator=estimator, base=rx.Relax(masks=600, chunk=4096), repeats=2, budget=512)(
            encoder, image, seed=0
        )
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert little.provenance["encoder_calls"] == plenty.provenance["encoder_calls"]
    torch.testing.assert_close(little.importance, plenty.importance, atol=0.02, rtol=0)
    assert (little.importance - plenty.importance).abs().mean() < 1e-3


def test_half_precision_is_the_default_and_gives_the_same_uncertainty():
    """On a trained encoder and real photos, at the paper's budget."""
    method = rx.Repeat(estimator="exact", repeats=10, base=rx.Relax(masks=1000))
    half = rx.load_encoder("efficientnet_lite0", device="cuda")
    full = rx.load_encoder("efficientnet_lite0", device="cuda", precision="float32")
    images = [rx.load_image(photo(), full) for photo in (data.chelsea, data.coffee, data.rocket, data.astronaut)]
    pairs = zip(method.stream(half, images, seed=0), method.stream(full, images, seed=0), strict=True)
    for a, b in pairs:
        assert a.provenance["ran"]["precision"] == "float16"
        assert b.provenance["ran"]["precision"] == "float32"
        assert spearmanr(a.uncertainty.flatten(), b.uncertainty.flatten()).statistic >= 0.98


def test_half_precision_is_not_used_where_it_would_decide():
    class Faint(nn.Module):
        """Codes so alike that half precision cannot tell them apart."""

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(147, 16))

        def forward(self, images):
            return 100 + 0.01 * self.body(images)

    torch.manual_seed(0)
    encoder = rx.load_encoder(Faint().cuda())
    image = rx.load_image(data.chelsea(), encoder)
    assert rx.Repeat()(encoder, image, seed=0).provenance["ran"]["precision"] == "float32"


def test_a_stream_is_what_single_images_are(both):
    encoder = both[1]
    images = [rx.load_image(photo(), encoder) for photo in (data.chelsea, data.coffee, data.rocket)]
    for found, image in zip(rx.Repeat().stream(encoder, images, seed=0), images, strict=True):
        alone = rx.Repeat()(encoder, image, seed=0)
        assert found.provenance["budget"]["masks"] == alone.provenance["budget"]["masks"]
        torch.testing.assert_close(found.importance, alone.importance, atol=0.02, rtol=0)


@pytest.mark.parametrize("masks", [1000, 10_000])
def test_memory_does_not_grow_with_masks(masks):
    encoder = rx.load_encoder("torchvision:resnet50", weights="random", device="cuda")
    image = rx.load_image(data.chelsea(), encoder)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    rx.Repeat(estimator="exact", repeats=2, base=rx.Relax(masks=masks))(encoder, image, seed=0)
    print(f"{masks} masks: {torch.cuda.max_memory_reserved() / 1e9:.2f} GB")
    assert torch.cuda.max_memory_reserved() < 6e9


@pytest.mark.parametrize(
    "method",
    [
        rx.Saliency(),
        rx.GuidedBackprop(),
        rx.InputXGradient(),
        rx.IntegratedGradients(steps=9, fill="blur"),
        rx.Occlusion(window=8, stride=4, fill="black"),
        rx.KernelShap(samples=60),
        rx.Lime(samples=60),
    ],
)
def test_label_free_methods_agree_and_leave_the_generators_as_they_were(method):
    from conftest import small_network

    on_cpu, on_gpu = (rx.load_encoder(small_network().double(), device=device) for device in ("cpu", "cuda"))
    image = rx.load_image(torch.rand(3, 24, 20), on_cpu)
    state = torch.cuda.get_rng_state()
    a, b = (method(encoder, image, seed=0) for encoder in (on_cpu, on_gpu))
    torch.testing.assert_close(a, b, atol=1e-5 * a.abs().max().item(), rtol=0)
    assert torch.cuda.get_rng_state().equal(state)


def test_noise_and_spread_on_the_gpu_are_named_by_their_seed():
    from conftest import small_network

    encoder = rx.load_encoder(small_network().double(), device="cuda")
    image = rx.load_image(torch.rand(3, 24, 20), encoder)
    for base in (rx.SmoothGrad(samples=9), rx.KernelShap(samples=20)):
        method = rx.Spread(base=base, passes=3)
        first, again = (method(encoder, image, seed=0) for _ in range(2))
        torch.testing.assert_close(first.importance, again.importance, atol=1e-9, rtol=1e-5)


def test_an_encoder_forgets_the_same_on_every_device():
    network = nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
    network(torch.zeros(1, 3, 16, 16))
    here, there = (
        rx.metrics.randomise_encoder(rx.load_encoder(network, device=device, size=16)).module.state_dict()
        for device in ("cpu", "cuda")
    )
    assert all(torch.equal(values, there[name].cpu()) for name, values in here.items())
