"""Toward every kind of target, maps equal closed forms for encoders that are linear or quadratic in the image."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from oracles import paper
from small_methods import FunctionBase
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.engine.targets import resolve
from repeat_xai.errors import ConfigurationError, ImageError
from repeat_xai.methods import fast_estimator
from repeat_xai.methods.fast_estimator import MeasuredMasks, mean_maps, regression
from repeat_xai.methods.many_targets import answers_for_targets, with_target
from repeat_xai.seeds import fold
from repeat_xai.types import Explanation, Task, result_of

HEIGHT, WIDTH, DIM = 8, 9, 5
GRID = rx.Grid(cells=2)
CPU = torch.device("cpu")


class Linear(nn.Module):
    """h = A x, of pixels in one row."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        values = torch.randn(DIM, 3 * HEIGHT * WIDTH, dtype=torch.float64, generator=generator)
        self.matrix = nn.Parameter(values / 10)

    def forward(self, images):
        return images.flatten(1) @ self.matrix.T


class Quadratic(Linear):
    """h = (A x)², each value by itself."""

    def forward(self, images):
        return super().forward(images).square()


class Squares(nn.Module):
    """h = B z + c, with z the means of all channels over the four quarters of the image: linear in a coarse mask."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        self.matrix = nn.Parameter(torch.randn(DIM, 12, dtype=torch.float64, generator=generator))
        self.bias = nn.Parameter(torch.randn(DIM, dtype=torch.float64, generator=generator))

    def forward(self, images):
        return nn.functional.adaptive_avg_pool2d(images, 2).flatten(1) @ self.matrix.T + self.bias


MODULES = {"linear": Linear, "quadratic": Quadratic}


def pixels(seed):
    return torch.randn(3, HEIGHT, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def code(seed):
    return torch.randn(DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=MODULES)
def algebraic(request):
    return rx.load_encoder(MODULES[request.param]())


def picture(encoder, seed=0):
    return rx.load_image(pixels(seed).float(), encoder)


def code_of(encoder, image):
    """Return the code by the formula of the encoder."""
    z = encoder.module.matrix.detach() @ image.pixels.double().flatten()
    return z.square() if isinstance(encoder.module, Quadratic) else z


TARGETS = ("image", "set", "code", "direction", "contrast")


def cases(encoder):
    """Return each kind of target, with the vector whose inner product with a code is its similarity."""
    others = tuple(picture(encoder, seed) for seed in (11, 12, 13))
    first, second, third = (code_of(encoder, other) for other in others)
    return {
        "image": (others[0], first),
        "set": (others, (first + second + third) / 3),
        "code": (code(21), code(21)),
        "direction": (rx.Direction(code=code(22)), code(22) / code(22).norm()),
        "contrast": (rx.Contrast(toward=others[0], away=code(23)), first - code(23)),
    }


def masks_of(image, count, *, seed):
    """Return the masks of a run of RELAX as numbers, [masks, height, width]."""
    basis = Basis.of(GRID, HEIGHT, WIDTH, CPU)
    parts = [basis.masks(draws, torch.float64) for draws in basis.row(count, seed=fold(seed, image.photo.digest))]
    return torch.cat(parts)


def analytic(encoder, image, vector, masks):
    """Return similarities by the formulas of the encoder, one masked copy at a time."""
    matrix, square = encoder.module.matrix.detach(), isinstance(encoder.module, Quadratic)
    x = image.pixels.double()
    codes = [matrix @ (x * mask).flatten() for mask in masks]
    return [float(vector @ (z.square() if square else z)) for z in codes]


def effect_in_loops(similarities, masks):
    """Return, pixel by pixel, how much higher the mean similarity is when the pixel is kept."""
    mean = sum(similarities) / len(similarities)
    result = np.zeros(masks.shape[1:])
    for i, j in itertools.product(*map(range, masks.shape[1:])):
        kept = masks[:, i, j]
        result[i, j] = sum(s * m for s, m in zip(similarities, kept, strict=True)) / sum(kept) - mean
    return result


@pytest.mark.parametrize("normalise", ["mask_sum", "count"])
@pytest.mark.parametrize("kind", TARGETS)
def test_relax_toward_a_target_equals_its_closed_form(algebraic, kind, normalise):
    image = picture(algebraic)
    target, vector = cases(algebraic)[kind]
    method = rx.Relax(masks=40, grid=GRID, similarity=rx.Linear(), target=target, normalise=normalise)
    explanation = method(algebraic, image, seed=2)
    masks = masks_of(image, 40, seed=2)
    s = analytic(algebraic, image, vector, masks)
    importance = paper.relax_importance(s, masks.numpy(), normalise)
    np.testing.assert_allclose(explanation.importance, importance, atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(explanation.effect, effect_in_loops(s, masks.numpy()), atol=1e-6, rtol=1e-6)
    variance = paper.relax_uncertainty(s, masks.numpy(), importance)
    np.testing.assert_allclose(explanation.uncertainty, variance, atol=1e-6, rtol=1e-6)
    assert explanation.effect.abs().max() > 0.01


@pytest.mark.parametrize("kind", ["image", "set", "code"])
def test_a_kernel_compares_with_the_code_of_the_target(algebraic, kind):
    image = picture(algebraic)
    target, vector = cases(algebraic)[kind]
    masks = masks_of(image, 40, seed=2)
    x = image.pixels.double()
    with torch.no_grad():
        codes = [algebraic.module((x * mask)[None])[0].tolist() for mask in masks]
    s = [paper.cosine(vector.tolist(), values) if any(values) else 0.0 for values in codes]
    explanation = rx.Relax(masks=40, grid=GRID, target=target)(algebraic, image, seed=2)
    expected = paper.relax_importance(s, masks.numpy())
    np.testing.assert_allclose(explanation.importance, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", TARGETS)
def test_exact_repeats_vote_with_their_own_maps_and_average_the_effect(algebraic, kind):
    image = picture(algebraic)
    target, vector = cases(algebraic)[kind]
    base = rx.Relax(masks=30, grid=GRID, similarity=rx.Linear(), target=target)
    explanation = rx.Repeat(estimator="exact", repeats=3, base=base)(algebraic, image, seed=2)
    rows = [masks_of(image, 30, seed=fold(2, "repeat", repeat)) for repeat in range(3)]
    runs = [analytic(algebraic, image, vector, masks) for masks in rows]
    maps = np.stack([paper.relax_importance(s, masks.numpy()) for s, masks in zip(runs, rows, strict=True)])
    effects = [effect_in_loops(s, masks.numpy()) for s, masks in zip(runs, rows, strict=True)]
    lifted = maps - maps.min((1, 2), keepdims=True)
    p, uncertainty, share = paper.repeat(lifted, np.mean)
    np.testing.assert_allclose(explanation.importance, p, atol=1e-6)
    np.testing.assert_allclose(explanation.uncertainty, uncertainty, atol=1e-6)
    np.testing.assert_allclose(explanation.vote_share, share, atol=1e-6)
    np.testing.assert_allclose(explanation.effect, np.mean(effects, 0), atol=1e-6)


@pytest.mark.parametrize("keep", [0.5, 0.4])
@pytest.mark.parametrize("kind", TARGETS)
def test_the_limit_map_and_its_effect_equal_their_closed_forms(monkeypatch, kind, keep):
    """With an image of one colour, s is linear in the masks' means over quarters; E[s·M] is found by enumeration."""
    monkeypatch.setattr(fast_estimator, "RIDGE", 0.0)
    encoder = rx.load_encoder(Squares())
    colour = torch.tensor([0.5, -0.3, 0.8], dtype=torch.float64)
    image = rx.load_image(colour[:, None, None].expand(3, HEIGHT, WIDTH).float(), encoder)
    others = tuple(picture(encoder, seed) for seed in (11, 12, 13))
    with torch.no_grad():
        first, second, third = (encoder.module(other.pixels.double()[None])[0] for other in others)
    target, vector = {
        "image": (others[0], first),
        "set": (others, (first + second + third) / 3),
        "code": (code(21), code(21)),
        "direction": (rx.Direction(code=code(22)), code(22) / code(22).norm()),
        "contrast": (rx.Contrast(toward=others, away=others[1]), (first + second + third) / 3 - second),
    }[kind]
    grid = rx.Grid(cells=2, keep=keep)
    basis = Basis.of(grid, HEIGHT, WIDTH, CPU)
    # s = constant + Σ_c slopes_c m_c, from B, the colour and the target alone
    constant = float(vector @ encoder.module.bias.detach())
    slopes = torch.einsum(
        "d,dkc,k->c", vector, encoder.module.matrix.detach().view(DIM, 3, 4), image.pixels[:, 0, 0].double()
    )
    product, mean = torch.zeros(HEIGHT, WIDTH, dtype=torch.float64), 0.0
    for cells in itertools.product((0.0, 1.0), repeat=4):
        probability = keep ** sum(cells) * (1 - keep) ** (4 - sum(cells)) / 4
        for down, right in itertools.product(range(2), range(2)):
            draws = Draws(torch.tensor(cells, dtype=torch.float64).view(1, 2, 2), torch.tensor([[down, right]]))
            (mask,) = basis.masks(draws, torch.float64)
            s = constant + float(slopes @ nn.functional.adaptive_avg_pool2d(mask[None], 2).flatten())
            product, mean = product + probability * s * mask, mean + probability * s
    expected = product / keep - mean

    base = rx.Relax(masks=50, grid=grid, similarity=rx.Linear(), target=target)
    explanation = rx.Repeat(base=base)(encoder, image, seed=1)
    np.testing.assert_allclose(explanation.effect, expected, atol=1e-6, rtol=1e-6)
    assert expected.abs().max() > 0.01

    draws = basis.draw_blocks(seed=2, start=0, stop=4)
    codes = encoder(image.pixels.double() * basis.masks(draws, torch.float64)[:, None]).double()
    similarity = resolve(encoder, target).similarities(rx.Linear(), codes[0], codes)
    fit = regression(basis, MeasuredMasks(draws, similarity))
    torch.testing.assert_close(mean_maps(basis, fit.beta[None], base)[0], product / keep, atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", [rx.Relax(masks=50), rx.Repeat(base=rx.Relax(masks=50), budget=256)])
def test_a_contrast_changes_the_sign_of_the_effect_with_its_order(encoder, image, method):
    others = [rx.load_image(torch.randn(3, 24, 20), encoder) for _ in range(2)]
    there = with_target(method, rx.Contrast(toward=others[0], away=others[1]))(encoder, image, seed=0)
    back = with_target(method, rx.Contrast(toward=others[1], away=others[0]))(encoder, image, seed=0)
    torch.testing.assert_close(there.effect, -back.effect, atol=1e-7, rtol=0)
    assert there.effect.amin() < 0 < there.effect.amax()
    assert there.effect.abs().max() > 1e-4


METHODS = {
    "relax": rx.Relax(masks=60),
    "fast": rx.Repeat(base=rx.Relax(masks=60), tolerance=0.05),
    "exact": rx.Repeat(estimator="exact", repeats=3, base=rx.Relax(masks=20)),
    "binary": rx.Repeat(votes="binary", base=rx.Relax(masks=60)),
}


@pytest.mark.parametrize("name", METHODS)
def test_without_another_target_there_is_no_effect_and_the_record_names_none(encoder, image, name):
    explanation = METHODS[name](encoder, image, seed=0)
    assert explanation.effect is None
    assert "effect" not in explanation.maps
    method = explanation.provenance["method"]
    assert method.get("base", method)["target"] is None


@pytest.mark.parametrize("name", ["relax", "binary", "exact"])
def test_an_image_as_its_own_target_has_the_maps_of_no_target(encoder, image, name):
    """Weights of votes apart, which are counted from another zero, as `votes` says."""
    method = METHODS[name] if name == "relax" else replace(METHODS[name], votes="binary")
    own, none = with_target(method, image)(encoder, image, seed=0), method(encoder, image, seed=0)
    torch.testing.assert_close(own.importance, none.importance, atol=1e-6, rtol=0)


def many_targets(encoder, count):
    """Return targets of every kind, some of which need more masks than others."""
    codes = [torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) for n in range(count)]
    others = [
        rx.load_image(torch.randn(3, 24, 20, generator=torch.Generator().manual_seed(n)), encoder) for n in (1, 2)
    ]
    kinds = [None, others[0], tuple(others), rx.Direction(code=codes[0]), rx.Contrast(toward=others[0], away=codes[1])]
    return kinds + codes[len(kinds) :]


@pytest.mark.parametrize("name", METHODS)
def test_twenty_targets_cost_the_calls_of_the_hardest_and_keep_their_own_bits(encoder, image, name):
    method, targets = METHODS[name], many_targets(encoder, 20)
    with metering() as meter:
        together = rx.explain_targets(encoder, image, targets, method=method, seed=5)
    assert len(together) == 20
    calls = []
    for target, explanation in zip(targets, together, strict=True):
        alone = with_target(method, target)(encoder, image, seed=5)
        assert alone.maps.keys() == explanation.maps.keys()
        for kind, values in alone.maps.items():
            assert torch.equal(values, explanation.maps[kind]), kind
        assert alone.provenance["method"] == explanation.provenance["method"]
        assert alone.provenance.get("budget") == explanation.provenance.get("budget")
        assert explanation.provenance["encoder_calls_shared_by"] == "20 targets"
        calls.append(alone.provenance["encoder_calls"])
    assert {explanation.provenance["encoder_calls"] for explanation in together} == {max(calls)}
    of_targets = 1 + 2 + 1  # an image, a set of two, and one side of a contrast
    assert meter.calls == max(calls) + of_targets
    if name == "fast":
        assert min(calls) < max(calls)


def test_a_stream_encodes_the_targets_once_and_explains_each_image_toward_each(encoder, image):
    images = [image, *(rx.load_image(torch.randn(3, 24, 20), encoder) for _ in range(3))]
    targets = many_targets(encoder, 6)
    method = METHODS["exact"]
    with metering() as meter:
        rows = list(rx.explain_many_targets(encoder, images, targets, method=method, seed=5))
    assert meter.calls == 4 * 61 + 4
    for one, row in zip(images, rows, strict=True):
        for target, explanation in zip(targets, row, strict=True):
            alone = with_target(method, target)(encoder, one, seed=5)
            assert torch.equal(alone.importance, explanation.importance)


def test_an_image_that_cannot_be_explained_is_answered_alone(encoder, image):
    blank = rx.load_image(torch.zeros(3, 24, 20), encoder)
    tasks = [Task(image), Task(blank), Task(None), Task(image)]
    answers = list(answers_for_targets(METHODS["relax"], encoder, tasks, [None, image], seed=0))
    assert [len(a.result) if isinstance(a.result, list) else type(a.result).__name__ for a in answers] == [
        2,
        "EncoderError",
        "NoneType",
        2,
    ]


@pytest.mark.parametrize(
    "method", [rx.Saliency(), rx.Spread(passes=2), rx.Repeat(base=rx.Lime(samples=30), repeats=2, estimator="exact")]
)
def test_methods_not_over_relax_explain_each_target_for_itself(encoder, image, method):
    targets = [image, rx.Direction(code=code(3).repeat(13)[:64])]
    tasks = [Task(image), Task(image)]
    for answer in answers_for_targets(method, encoder, tasks, targets, seed=0):
        explanations = result_of(answer)
        for target, explanation in zip(targets, explanations, strict=True):
            assert torch.equal(explanation.importance, with_target(method, target)(encoder, image, seed=0).importance)
        assert answer.calls == sum(e.provenance["encoder_calls"] for e in explanations)


@pytest.mark.parametrize("similarity", [rx.Cosine(), rx.Linear()])
def test_negative_similarities_vote_too(encoder, image, similarity):
    """A direction and its sum with a constant rank pixels alike; so do targets whose similarities are all negative."""
    own = encoder(image.pixels.double()[None])[0].double()
    base = rx.Relax(masks=60, similarity=similarity)
    opposite = rx.Repeat(base=replace(base, target=-own), budget=256)(encoder, image, seed=0)
    assert rx.Relax(masks=60, similarity=similarity, target=-own)(encoder, image, seed=0).importance.amax() < 0
    assert opposite.importance.amax() > 0.3
    assert torch.equal(opposite.importance > 0, opposite.vote_share > 0)
    assert (opposite.importance <= opposite.vote_share + 1e-6).all()


def test_weights_do_not_change_with_a_constant_added_to_all_similarities(encoder, image):
    @dataclass(frozen=True)
    class Shifted:
        """A kernel with a constant added."""

        constant: float

        def __call__(self, code, codes):
            return codes @ code + self.constant

    other = rx.load_image(torch.randn(3, 24, 20, generator=torch.Generator().manual_seed(1)), encoder)
    maps = [
        rx.Repeat(base=rx.Relax(masks=60, similarity=Shifted(c), target=other), budget=256)(encoder, image, seed=0)
        for c in (0.0, -5.0, 2.0)
    ]
    for explanation in maps[1:]:
        torch.testing.assert_close(explanation.importance, maps[0].importance, atol=1e-5, rtol=0)
        torch.testing.assert_close(explanation.effect, maps[0].effect, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", TARGETS)
def test_label_free_methods_explain_the_inner_product_with_the_target(algebraic, kind):
    """The gradient of ⟨v, A x⟩ is Aᵀv, and that of ⟨v, (A x)²⟩ is 2 Aᵀ(v ⊙ A x)."""
    image = picture(algebraic)
    target, vector = cases(algebraic)[kind]
    if kind == "direction":
        vector = target.code
    matrix = algebraic.module.matrix.detach()
    if isinstance(algebraic.module, Quadratic):
        vector = 2 * vector * (matrix @ image.pixels.double().flatten())
    gradient = (matrix.T @ vector).view(3, HEIGHT, WIDTH)
    importance = rx.Saliency(target=target, channels="mean").importance(algebraic, image, seed=0)
    torch.testing.assert_close(importance, gradient.mean(0), atol=1e-6, rtol=1e-6)


def test_the_target_of_a_label_free_method_is_encoded_once_for_many_images(encoder, image):
    other = rx.load_image(torch.randn(3, 24, 20), encoder)
    for method, calls in (
        (rx.Saliency(target=other), 1),
        (rx.Spread(base=rx.Saliency(target=other), passes=3), 3),
        (rx.Repeat(base=rx.Lime(samples=30, target=(other,)), repeats=2, estimator="exact"), 60),
    ):
        with metering() as meter:
            explanations = list(method.stream(encoder, [image, image], seed=0))
        assert meter.calls == 2 * calls + 1
        assert explanations[0].provenance["encoder_calls"] == method.calls == calls


def test_targets_in_the_record_are_plain_json_and_say_what_they_are(encoder, image, tmp_path):
    vector = torch.randn(64)
    methods = [rx.Relax(masks=5, target=target) for target in (image, (image, image), vector)]
    recorded = [method(encoder, image, seed=0).provenance["method"]["target"] for method in methods]
    assert recorded[0]["sha256"] == image.photo.digest
    assert recorded[1] == [recorded[0], recorded[0]]
    assert recorded[2]["shape"] == [64]
    assert (
        recorded[2] == rx.Relax(masks=5, target=vector.clone())(encoder, image, seed=0).provenance["method"]["target"]
    )
    contrast = rx.Relax(masks=5, target=rx.Contrast(toward=image, away=vector))
    explanation = contrast(encoder, image, seed=0)
    assert explanation.provenance["method"]["target"] == {
        "name": "Contrast",
        "toward": recorded[0],
        "away": recorded[2],
    }
    direction = rx.Relax(masks=5, target=rx.Direction(code=vector.bfloat16()))(encoder, image, seed=0)
    assert direction.provenance["method"]["target"]["name"] == "Direction"
    explanation.save(tmp_path / "one.npz")
    loaded = Explanation.load(tmp_path / "one.npz")
    assert torch.equal(loaded.effect, explanation.effect)
    assert list(loaded.maps) == ["importance", "uncertainty", "effect"]
    assert loaded.provenance == explanation.provenance


@dataclass(frozen=True)
class Captioned:
    """An encoder with a text tower, in which the code of a text is drawn from its letters."""

    encoder: TorchEncoder

    def __getattr__(self, name):
        return getattr(self.encoder, name)

    def __call__(self, images):
        return self.encoder(images)

    def encode_text(self, texts):
        return torch.stack([code(sum(map(ord, text))).repeat(13)[:64].float() for text in texts])


def test_a_text_is_explained_as_its_code_is(encoder, image):
    captioned, text = Captioned(encoder), rx.Text("a red car")
    (own,) = captioned.encode_text([text.text])
    for method in (
        rx.Relax(masks=20),
        rx.Repeat(base=rx.Relax(masks=20), budget=256),
        rx.Occlusion(window=8, stride=4),
    ):
        toward_text = with_target(method, text)(captioned, image, seed=0)
        toward_code = with_target(method, own)(captioned, image, seed=0)
        assert torch.equal(toward_text.importance, toward_code.importance)
    record = rx.Relax(masks=5, target=text)(captioned, image, seed=0).provenance["method"]["target"]
    assert record == {"name": "Text", "text": "a red car"}
    with pytest.raises(ConfigurationError, match="no text tower"):
        rx.Relax(masks=5, target=text)(encoder, image, seed=0)
    with pytest.raises(ConfigurationError, match="no text tower"):
        rx.Saliency(target=text)(encoder, image, seed=0)


REFUSALS = {
    "no targets": (lambda e, i: rx.explain_targets(e, i, []), ConfigurationError, "at least one"),
    "a target twice": (
        lambda e, i: rx.explain_targets(e, i, [i], method=rx.Relax(target=torch.ones(64))),
        ConfigurationError,
        "already",
    ),
    "many pictures": (lambda e, i: rx.explain_targets(e, torch.rand(2, 3, 24, 20), [i]), ImageError, "explain_many"),
    "a base without target": (
        lambda e, i: rx.explain_targets(e, i, [i], method=rx.Repeat(base=FunctionBase(lambda *_, seed: None))),
        ConfigurationError,
        "FunctionBase has no target",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_explained_toward_targets_is_refused_in_one_line(encoder, image, name):
    run, error, words = REFUSALS[name]
    with pytest.raises(error, match=words) as caught:
        run(encoder, image)
    assert "\n" not in str(caught.value)
