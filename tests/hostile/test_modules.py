"""Modules that misbehave are explained as healthy ones are, or refused in a line; torch is as it was after each."""

import warnings

import pytest
import torch
from hostile.module_faults import BLIND, CASES, UNSTEADY_CASES, Faulty, failing, healthy
from hostile.torch_settings import unchanged
from hostile.verdicts import Case, called

import repeat_xai as rx

METHODS = {
    "repeat": lambda e, x: rx.Repeat(budget=98)(e, x, seed=0).importance,
    "repeat exact": lambda e, x: (
        rx.Repeat(estimator="exact", repeats=2, base=rx.Relax(masks=20))(e, x, seed=0).importance
    ),
    "relax": lambda e, x: rx.Relax(masks=40)(e, x, seed=0).uncertainty,
    "saliency": lambda e, x: rx.Saliency().importance(e, x, seed=0),
    "integrated gradients": lambda e, x: rx.IntegratedGradients(steps=9).importance(e, x, seed=0),
    "kernel shap": lambda e, x: rx.KernelShap(samples=20, features=rx.Squares(cells=3)).importance(e, x, seed=0),
}
GRADIENTS = ("saliency", "integrated gradients")
QUICK = ("repeat", "saliency", "kernel shap")
"""Methods of the short part of the corpus: one of each way in which encoders are run."""
EXPORTED = {"exported": lambda e, x: rx.Relax(masks=600).importance(e, x, seed=0)}
"""Masks enough that the module is exported to ONNX Runtime."""


every_method = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.hostile) for name in METHODS]
)


@pytest.fixture(scope="module")
def image():
    generator = torch.Generator().manual_seed(1)
    return rx.load_image(torch.randn(3, 32, 32, generator=generator), rx.load_encoder(healthy()))


@pytest.fixture(scope="module")
def expected(image):
    """The maps of the healthy network."""
    encoder = rx.load_encoder(healthy())
    return {name: method(encoder, image) for name, method in METHODS.items()}


def explained(case, method, image, module):
    """The verdict, the map, and what was warned of."""
    encoder, maps = rx.load_encoder(module, name="mine"), []
    with warnings.catch_warnings(record=True) as said, unchanged():
        warnings.simplefilter("always")
        verdict = called(lambda: maps.append(method(encoder, image)), seconds=60)
    return verdict, maps, [str(warning.message) for warning in said]


@every_method
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_module_that_misbehaves(case, name, image, expected, judge, tmp_path):
    module = case.make(tmp_path)
    verdict, maps, said = explained(case, METHODS[name], image, module)
    if name in GRADIENTS and case.name in BLIND:
        case = Case(name=case.name, make=case.make, says="passes no gradient on|not have been used")
    judge("modules", verdict, case)
    assert not any("different codes" in words for words in said)
    assert not any(part.training for part in module.body.modules())
    if case.expected == "right":
        torch.testing.assert_close(maps[0], expected[name], atol=1e-6, rtol=1e-5)


@every_method
@pytest.mark.parametrize("case", UNSTEADY_CASES, ids=str)
def test_a_module_whose_codes_are_not_steady_is_explained_with_a_warning(case, name, image, judge, tmp_path):
    verdict, maps, said = explained(case, METHODS[name], image, case.make(tmp_path))
    judge("modules", verdict, case)
    assert maps[0].isfinite().all()
    assert any("mine: gives one image different codes" in words for words in said)
    assert not any("\n" in words for words in said)


@pytest.mark.hostile
@pytest.mark.parametrize("case", [*CASES, *UNSTEADY_CASES], ids=str)
def test_a_module_that_misbehaves_while_it_is_exported(case, image, judge, tmp_path):
    verdict, maps, _ = explained(case, EXPORTED["exported"], image, case.make(tmp_path))
    judge("modules", verdict)
    assert verdict.kind in ("right", case.expected), verdict.said
    if maps:
        assert maps[0].isfinite().all()


@every_method
def test_an_interrupt_passes_and_leaves_torch_as_it_was(name, image):
    module = Faulty(failing(KeyboardInterrupt))
    with unchanged(), pytest.raises(KeyboardInterrupt):
        METHODS[name](rx.load_encoder(module), image)
