"""Looks at unfinished work: what is seen is the method with fewer masks, and looking changes nothing."""

from dataclasses import replace

import pytest
import torch
from repeat_xai.app.explanation_run import Run

import repeat_xai as rx
from repeat_xai.app.live_preview import cut, look, stages
from repeat_xai.encoders.calls import metering

RELAX = rx.Relax(masks=600, chunk=16)
METHODS = {
    "fast": rx.Repeat(base=RELAX, pool=768),
    "automatic": rx.Repeat(base=replace(RELAX, masks=100)),
    "exact": rx.Repeat(base=replace(RELAX, masks=150), estimator="exact", repeats=5, votes="binary"),
    "relax": RELAX,
}


def plain(method, encoder, image, seed=0):
    return (
        method.explain(encoder, image, seed=seed) if isinstance(method, rx.Relax) else method(encoder, image, seed=seed)
    )


def run(method, encoder, image, seed=0, told=lambda calls: None):
    seen = []
    found = Run(method, encoder, image, seed=seed, told=told, seen=seen.append).explanation()
    return found, seen


@pytest.mark.parametrize("name", METHODS)
def test_looking_changes_nothing(encoder, image, name):
    method = METHODS[name]
    found, seen = run(method, encoder, image, seed=4)
    own = plain(method, encoder, image, seed=4)
    assert seen
    assert torch.equal(found.importance, own.importance)
    assert torch.equal(found.uncertainty, own.uncertainty)
    assert found.provenance["method"] == own.provenance["method"]
    assert found.provenance["encoder_calls"] == own.provenance["encoder_calls"]


@pytest.mark.parametrize("name", METHODS)
def test_what_is_seen_is_the_method_with_fewer_masks(encoder, image, name):
    method = METHODS[name]
    _, seen = run(method, encoder, image)
    for early, masks in zip(seen, stages(method), strict=False):
        if name in ("fast", "automatic") and masks < 256:  # of one block there is no fixed pool
            assert early.provenance["pool"] == {"masks": masks}
            continue
        own = plain(cut(method, masks), encoder, image)
        torch.testing.assert_close(early.importance, own.importance, rtol=0, atol=1e-6)
        torch.testing.assert_close(early.uncertainty, own.uncertainty, rtol=0, atol=1e-6)
        assert early.provenance["method"] == own.provenance["method"]
        assert early.provenance["encoder_calls"] == own.provenance["encoder_calls"] == masks + 1


def test_a_single_block_comes_near_and_more_come_nearer(encoder, image):
    method = rx.Repeat(base=RELAX, pool=4096)
    found, seen = run(method, encoder, image)
    away = [(early.importance - found.importance).abs().mean().item() for early in seen]
    assert len(away) == 5
    assert away[0] < 0.2
    assert away[-1] < away[0] / 2


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (rx.Repeat(), [128, 256, 512, 1024, 2048]),
        (rx.Repeat(pool=256), [128]),
        (rx.Repeat(base=rx.Relax(grid=rx.Grid(cells=3)), pool=200), [32, 64, 128]),
        (rx.Repeat(estimator="exact"), [128, 256, 512, 1000, 2000, 4000, 8000]),
        (rx.Repeat(estimator="exact", base=rx.Relax(masks=10), repeats=20), [160]),
        (rx.Repeat(estimator="exact", base=rx.KernelShap()), []),
        (rx.Relax(), [128, 256, 512]),
        (rx.Relax(masks=100), []),
        (rx.Spread(), []),
    ],
)
def test_looks_are_after_twice_as_many_masks_each_time(method, expected):
    assert list(stages(method)) == expected


def test_looks_cost_no_encoder_calls(encoder, image):
    with metering() as meter:
        run(METHODS["exact"], encoder, image)
    assert meter.calls == METHODS["exact"].calls


def test_who_is_told_of_calls_can_end_the_work(encoder, image):
    class Enough(BaseException):
        pass

    def told(calls):
        if calls > 100:
            raise Enough

    with metering() as meter, pytest.raises(Enough):
        run(RELAX, encoder, image, told=told)
    assert 100 < meter.calls <= 100 + 16


def test_similarities_nobody_was_told_of_are_not_taken_for_masks(encoder, image):
    """On a GPU the kernel is tried on a made-up image first."""
    work = Run(RELAX, encoder, image, seed=0, told=lambda calls: None, seen=lambda found: pytest.fail("seen"))
    work._heard(torch.ones(200))
    assert len(work._similarity) == 0


def test_a_look_needs_no_encoder(image, encoder):
    similarity = torch.linspace(0.5, 1, 128, dtype=torch.float64)
    with metering() as meter:
        found = look(rx.Relax(), encoder, image, similarity, seed=0)
    assert meter.calls == 0
    assert found.provenance["method"]["masks"] == 128
    assert found.importance.shape == image.pixels.shape[1:]
