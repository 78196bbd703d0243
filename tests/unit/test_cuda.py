"""On a GPU the same masks give the same maps as on the CPU, whatever the chunk, and nothing is left changed."""

import pytest
import torch
from skimage import data

import repeat_xai as rx

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def both():
    name = "torchvision:resnet18"
    return [rx.load_encoder(name, weights="random", device=device) for device in ("cpu", "cuda")]


def test_the_gpu_agrees_with_the_cpu(both):
    on_cpu, on_gpu = both
    image = rx.load_image(data.chelsea(), on_cpu)
    relax = rx.Relax(masks=100)
    assert on_gpu.device.type == "cuda"
    a, b = relax.explain(on_cpu, image, seed=0), relax.explain(on_gpu, image, seed=0)
    torch.testing.assert_close(a.importance, b.importance, atol=1e-5, rtol=0)
    assert torch.corrcoef(torch.stack((a.importance.flatten(), b.importance.flatten())))[0, 1] > 0.999


def test_chunks_and_repetition_on_the_gpu(both):
    encoder = both[1]
    image = rx.load_image(data.chelsea(), encoder)
    whole, again, parts = (rx.Relax(masks=300, chunk=c)(encoder, image, seed=0) for c in (256, 256, 50))
    assert torch.equal(whole, again)
    torch.testing.assert_close(whole, parts, atol=1e-6, rtol=0)
    assert rx.map_to_photo(whole, image.photo).device.type == "cuda"


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


def test_too_large_a_chunk_is_said_so(both):
    image = rx.load_image(data.chelsea(), both[1])
    with pytest.raises(rx.RepeatError, match=r"out of memory.*smaller chunk"):
        rx.Relax(masks=400_000, chunk=400_000)(both[1], image, seed=0)
