"""Tests that misbehaving modules are explained or refused in one line, and leave the settings of torch unchanged."""

import warnings

import pytest
import torch
from hostile.module_faults import BLIND, CASES, UNSTEADY_CASES, Faulty, failing, healthy
from hostile.torch_settings import unchanged
from hostile.verdicts import Case, verdict_of_call

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
"""Methods in the short part of the corpus: one for each way in which encoders are run."""
EXPORTED = {"exported": lambda e, x: rx.Relax(masks=600).importance(e, x, seed=0)}
"""A method with enough masks that the module is exported to ONNX Runtime."""


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
    """Return the verdict, the map and the warnings of an explanation."""
    maps = []
    with warnings.catch_warnings(record=True) as caught, unchanged():
        warnings.simplefilter("always")
        verdict = verdict_of_call(lambda: maps.append(method(rx.load_encoder(module, name="mine"), image)), seconds=60)
    return verdict, maps, [str(warning.message) for warning in caught]


@every_method
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_misbehaving_module_is_explained_or_refused(case, name, image, expected, judge, tmp_path):
    module = case.make(tmp_path)
    verdict, maps, caught = explained(case, METHODS[name], image, module)
    if name in GRADIENTS and case.name in BLIND:
        case = Case(name=case.name, make=case.make, message="passes no gradient on|not have been used")
    judge("modules", verdict, case)
    assert not any("different codes" in words for words in caught)
    assert not any(part.training for part in module.body.modules())
    if case.expected == "right":
        torch.testing.assert_close(maps[0], expected[name], atol=1e-6, rtol=1e-5)


@every_method
@pytest.mark.parametrize("case", UNSTEADY_CASES, ids=str)
def test_a_module_with_varying_codes_is_explained_with_a_warning(case, name, image, judge, tmp_path):
    verdict, maps, caught = explained(case, METHODS[name], image, case.make(tmp_path))
    judge("modules", verdict, case)
    assert maps[0].isfinite().all()
    assert any("mine: gives one image different codes" in words for words in caught)
    assert not any("\n" in words for words in caught)


@pytest.mark.hostile
@pytest.mark.parametrize("case", [*CASES, *UNSTEADY_CASES], ids=str)
def test_a_module_that_misbehaves_during_export_is_explained_or_refused(case, image, judge, tmp_path):
    verdict, maps, _ = explained(case, EXPORTED["exported"], image, case.make(tmp_path))
    judge("modules", verdict)
    assert verdict.kind in ("right", case.expected), verdict.text
    if maps:
        assert maps[0].isfinite().all()


@every_method
def test_an_interrupt_is_passed_on_and_leaves_the_settings_of_torch_unchanged(name, image):
    module = Faulty(failing(KeyboardInterrupt))
    with unchanged(), pytest.raises(KeyboardInterrupt):
        METHODS[name](rx.load_encoder(module), image)
