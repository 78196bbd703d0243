"""Our RELAX equals the authors' own, relax-xai 0.0.5, on equal masks."""

import pytest
import relax_xai.masking_functions
import relax_xai.relax
import torch

import repeat_xai as rx
from repeat_xai.engine.masks import Basis
from repeat_xai.seeds import fold

CPU = torch.device("cpu")


@pytest.fixture
def photo_like(network):
    """Return an encoder and a tall image of random pixels."""
    encoder = rx.load_encoder(network.eval())
    pixels = torch.randn(3, 64, 48, generator=torch.Generator().manual_seed(5))
    return encoder, rx.load_image(pixels, encoder)


def test_masks_equal_those_of_relax_xai(monkeypatch):
    """The same grids and shifts give the same masks."""
    basis = Basis.of(rx.Grid(), 64, 48, CPU)
    draws = basis.draw(seed=2, start=0, stop=30)
    down, right = draws.shifts.unbind(1)
    shifts = iter((down, right))
    monkeypatch.setattr(relax_xai.masking_functions.torch, "rand", lambda *_, **__: 1 - draws.grids[:, None])
    monkeypatch.setattr(relax_xai.masking_functions.torch, "randint", lambda *_, **__: next(shifts))
    (theirs,) = relax_xai.masking_functions.mask_generator(30, (64, 48), "cpu")
    torch.testing.assert_close(basis.masks(draws, torch.float32), theirs[:, 0], atol=1e-6, rtol=0)
    assert {0, 6} <= set(down.tolist()) | set(right.tolist())


def test_importance_and_undivided_uncertainty_equal_those_of_relax_xai(monkeypatch, photo_like):
    encoder, image = photo_like
    basis = Basis.of(rx.Grid(), 64, 48, CPU)
    draws = basis.draw(seed=fold(11, image.photo.digest), start=0, stop=200)
    batches = iter(basis.masks(draws, torch.float32)[:, None].split(10))
    monkeypatch.setattr(relax_xai.relax, "mask_generator", lambda *_: iter([next(batches)]))
    theirs = relax_xai.relax.RELAX(image.pixels[None], encoder.module, batch_size=10, num_batches=20)
    with torch.no_grad():
        theirs()

    ours = rx.Relax(masks=200, normalise_uncertainty="sum")(encoder, image, seed=11)

    torch.testing.assert_close(ours.importance, theirs.importance.detach(), atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.uncertainty, theirs.uncertainty.detach(), atol=1e-4, rtol=0)
    kept = (ours.certain_importance() > 0) == (theirs.u_relax.detach() > 0)
    assert kept.float().mean() > 0.999
    assert ours.importance.std() > 1e-3
