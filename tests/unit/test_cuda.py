"""On a GPU the same masks give the same maps as on the CPU in batches of any size, and no setting is left changed."""

import pytest
import torch
from conftest import small_network
from scipy.stats import spearmanr
from skimage import data
from torch import nn

import repeat_xai as rx
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import replay
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.types import Task, only_result, result_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def encoders():
    """Return the same encoder on the CPU and on the GPU."""
    name = "torchvision:resnet18"
    return [rx.load_encoder(name, weights="random", device=device, precision="float32") for device in ("cpu", "cuda")]


def test_the_gpu_agrees_with_the_cpu(encoders):
    on_cpu, on_gpu = encoders
    image = rx.load_image(data.chelsea(), on_cpu)
    relax = rx.Relax(masks=100)
    assert on_gpu.device.type == "cuda"
    a, b = relax(on_cpu, image, seed=0), relax(on_gpu, image, seed=0)
    torch.testing.assert_close(a.importance, b.importance, atol=1e-5, rtol=0)
    assert torch.corrcoef(torch.stack((a.importance.flatten(), b.importance.flatten())))[0, 1] > 0.999


def test_a_run_repeats_bit_for_bit_and_the_batch_size_changes_nothing(encoders):
    encoder = encoders[1]
    image = rx.load_image(data.chelsea(), encoder)
    first, again, in_chunks = (
        rx.Relax(masks=300, chunk=chunk).importance(encoder, image, seed=0) for chunk in (256, 256, 50)
    )
    assert torch.equal(first, again)
    torch.testing.assert_close(first, in_chunks, atol=1e-6, rtol=0)
    assert rx.map_to_photo(first.cuda(), image.photo).device.type == "cuda"


@pytest.mark.parametrize("threshold", [*THRESHOLDS, lambda maps: maps.mean((1, 2))])
@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_repeat_with_every_threshold_on_the_gpu(encoders, estimator, threshold):
    encoder = encoders[1]
    image = rx.load_image(data.chelsea(), encoder)
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=50), repeats=3, threshold=threshold, budget=256)
    explanation = method(encoder, image, seed=0)
    assert all(values.device.type == "cpu" for values in explanation.maps.values())
    assert 0 < explanation.vote_share.mean() < 1


def test_global_settings_and_generators_are_left_unchanged():
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
def test_a_gpu_with_little_memory_gives_the_same_map(encoders, estimator):
    encoder = encoders[1]
    image = rx.load_image(data.chelsea(), encoder)
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=600), repeats=2, budget=512)
    in_large_batches = rx.Repeat(estimator=estimator, base=rx.Relax(masks=600, chunk=4096), repeats=2, budget=512)
    expected = method(encoder, image, seed=0)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 1e9) / total)
    try:
        explanation = in_large_batches(encoder, image, seed=0)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert explanation.provenance["encoder_calls"] == expected.provenance["encoder_calls"]
    torch.testing.assert_close(explanation.importance, expected.importance, atol=0.02, rtol=0)
    assert (explanation.importance - expected.importance).abs().mean() < 1e-3


def test_half_precision_is_the_default_and_gives_the_same_uncertainty():
    """The encoder is trained, the photos are real, and the budget is the paper's."""
    method = rx.Repeat(estimator="exact", repeats=10, base=rx.Relax(masks=1000))
    half = rx.load_encoder("efficientnet_lite0", device="cuda")
    full = rx.load_encoder("efficientnet_lite0", device="cuda", precision="float32")
    images = [rx.load_image(photo(), full) for photo in (data.chelsea, data.coffee, data.rocket, data.astronaut)]
    pairs = zip(method.stream(half, images, seed=0), method.stream(full, images, seed=0), strict=True)
    for a, b in pairs:
        assert a.provenance["ran"]["precision"] == "float16"
        assert b.provenance["ran"]["precision"] == "float32"
        assert spearmanr(a.uncertainty.flatten(), b.uncertainty.flatten()).statistic >= 0.98


def test_half_precision_is_not_used_where_its_rounding_would_decide_votes():
    class NearlyConstant(nn.Module):
        """An encoder whose codes differ so little that half precision cannot tell them apart."""

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(147, 16))

        def forward(self, images):
            return 100 + 0.01 * self.body(images)

    torch.manual_seed(0)
    encoder = rx.load_encoder(NearlyConstant().cuda())
    image = rx.load_image(data.chelsea(), encoder)
    assert rx.Repeat()(encoder, image, seed=0).provenance["ran"]["precision"] == "float32"


def test_a_stream_gives_what_single_calls_give(encoders):
    encoder = encoders[1]
    images = [rx.load_image(photo(), encoder) for photo in (data.chelsea, data.coffee, data.rocket)]
    for explanation, image in zip(rx.Repeat().stream(encoder, images, seed=0), images, strict=True):
        alone = rx.Repeat()(encoder, image, seed=0)
        assert explanation.provenance["budget"]["masks"] == alone.provenance["budget"]["masks"]
        torch.testing.assert_close(explanation.importance, alone.importance, atol=0.02, rtol=0)


@pytest.mark.parametrize("method", [rx.Relax(masks=60), rx.Repeat(base=rx.Relax(masks=60)), rx.KernelShap(samples=20)])
def test_tasks_without_an_image_pass_through_in_order(encoders, method):
    encoder = encoders[1]
    small = rx.load_image(torch.rand(3, 64, 64), encoder)
    large = rx.load_image(data.chelsea(), encoder)
    contents = [None, rx.RepeatError("unreadable"), small, small, None, large, None, large, small, None]
    tasks = [Task(content, tag=number) for number, content in enumerate(contents)]
    answers = list(method.answers(encoder, iter(tasks), seed=0))
    assert [answer.task.tag for answer in answers] == list(range(len(tasks)))
    for answer, content in zip(answers, contents, strict=True):
        if isinstance(content, rx.Image):
            assert result_of(answer).photo is content.photo
        else:
            assert answer.result is content


def test_progress_is_given_all_similarities_which_replay_the_run(encoders):
    encoder, measured = encoders[1], []
    image = rx.load_image(data.chelsea(), encoder)
    method = rx.Repeat(base=rx.Relax(masks=100), budget=1024)
    explanation = only_result(method.answers(encoder, (Task(image),), seed=0, progress=measured.append))
    similarity = torch.cat(measured).cpu()
    assert len(similarity) == explanation.provenance["encoder_calls"] - 1
    basis = Basis.of(rx.Grid(), *image.pixels.shape[1:], torch.device("cpu"))
    replayed = replay(method.estimate(basis, image, seed=0), similarity)
    assert (replayed.importance - explanation.importance).abs().mean() < 1e-3


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
def test_label_free_methods_agree_with_the_cpu_and_leave_the_generators_unchanged(method):
    on_cpu, on_gpu = (rx.load_encoder(small_network().double(), device=device) for device in ("cpu", "cuda"))
    image = rx.load_image(torch.rand(3, 24, 20), on_cpu)
    state = torch.cuda.get_rng_state()
    a, b = (method.importance(encoder, image, seed=0) for encoder in (on_cpu, on_gpu))
    torch.testing.assert_close(a, b, atol=1e-5 * a.abs().max().item(), rtol=0)
    assert torch.cuda.get_rng_state().equal(state)


def test_the_seed_determines_noise_and_spread_on_the_gpu():
    encoder = rx.load_encoder(small_network().double(), device="cuda")
    image = rx.load_image(torch.rand(3, 24, 20), encoder)
    for base in (rx.SmoothGrad(samples=9), rx.KernelShap(samples=20)):
        method = rx.Spread(base=base, passes=3)
        first, again = (method(encoder, image, seed=0) for _ in range(2))
        torch.testing.assert_close(first.importance, again.importance, atol=1e-9, rtol=1e-5)


def test_randomised_weights_are_the_same_on_every_device():
    network = nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
    network(torch.zeros(1, 3, 16, 16))
    on_cpu, on_gpu = (
        rx.metrics.randomise_encoder(rx.load_encoder(network, device=device, size=16)).module.state_dict()
        for device in ("cpu", "cuda")
    )
    assert all(torch.equal(values, on_gpu[name].cpu()) for name, values in on_cpu.items())
