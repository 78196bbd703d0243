"""Every method has a name, which one parser reads, and options that a method does not have are refused."""

import sys
from dataclasses import replace

import pytest

import repeat_xai as rx
from repeat_xai.errors import ConfigurationError
from repeat_xai.methods import method_names
from repeat_xai.methods.method_names import (
    METHODS,
    BaseOptions,
    MethodName,
    MethodSettings,
    parse,
    split_names,
    stochastic_bases,
)

SETTINGS = MethodSettings(repeat=rx.Repeat(repeats=4), relax=rx.Relax(masks=70), by=rx.Noise(), passes=3)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("repeat", MethodName("repeat")),
        ("relax", MethodName("relax")),
        ("saliency", MethodName("saliency")),
        ("repeat:relax", MethodName("relax", "repeat")),
        ("repeat:kernel_shap", MethodName("kernel_shap", "repeat")),
        ("once:saliency", MethodName("saliency", "once")),
        ("repeat:threshold=otsu", MethodName("repeat", options={"threshold": "otsu"})),
        ("repeat:repeats=5", MethodName("repeat", options={"repeats": 5})),
        ("repeat:votes=binary", MethodName("repeat", options={"votes": "binary"})),
    ],
)
def test_a_name_is_parsed(name, parts):
    assert parse(name) == parts


@pytest.mark.parametrize(
    ("name", "keyword"),
    [
        ("", "method"),
        ("gradcam", "gradcam"),
        ("Saliency", "Saliency"),
        ("repeat:", "method"),
        ("repeat:gradcam", "gradcam"),
        ("repeat:repeat", "repeat:repeat"),
        ("once:repeat", "once:repeat"),
        ("once:relax", "once:relax"),
        ("twice:saliency", "twice:saliency"),
        ("repeat:once:saliency", "repeat:once:saliency"),
        ("repeat:colour=red", "colour"),
        ("repeat:base=saliency", "base"),
        ("repeat:repeats=many", "repeats"),
        ("relax:masks=9", "masks"),
        ("saliency=9", "saliency=9"),
    ],
)
def test_an_unknown_name_is_refused_in_one_line(name, keyword):
    with pytest.raises(ConfigurationError, match=keyword) as refusal:
        parse(name)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("repeat", SETTINGS.repeat),
        ("relax", SETTINGS.relax),
        ("repeat:relax", SETTINGS.repeat),
        ("saliency", rx.Spread(base=rx.Saliency(), by=rx.Noise(), passes=3)),
        ("vargrad", rx.Spread(base=rx.SmoothGrad(moment="variance"), by=rx.Noise(), passes=3)),
        ("once:saliency", rx.Saliency()),
        ("repeat:kernel_shap", rx.Repeat(base=rx.KernelShap(), estimator="exact", repeats=4)),
        ("repeat:threshold=otsu", rx.Repeat(threshold="otsu", repeats=4)),
        ("repeat:repeats=7", rx.Repeat(repeats=7)),
        ("repeat:votes=binary", rx.Repeat(votes="binary", repeats=4)),
    ],
)
def test_a_name_stands_for_a_method(name, method):
    assert SETTINGS.method(name) == method
    assert SETTINGS.methods([name]) == {name: method}


@pytest.mark.parametrize("name", ["repeat:threshold=median", "repeat:repeats=0"])
def test_a_value_that_an_option_cannot_have_is_refused(name):
    with pytest.raises(ConfigurationError, match=name.split(":")[1].split("=")[0]):
        SETTINGS.method(name)


@pytest.mark.parametrize("name", METHODS)
def test_every_name_makes_a_method_in_each_form_it_has(name):
    assert SETTINGS.method(name).calls
    if name in stochastic_bases():
        assert isinstance(SETTINGS.method(f"repeat:{name}"), rx.Repeat)
    elif name not in ("repeat", "relax"):
        with pytest.raises(ConfigurationError, match="same map"):
            SETTINGS.method(f"repeat:{name}")
    if name not in ("repeat", "relax"):
        assert SETTINGS.method(f"once:{name}") == METHODS[name]


def test_the_stochastic_bases_are_those_that_repeat_accepts():
    assert stochastic_bases() == ["gradient_shap", "kernel_shap", "lime", "smoothgrad", "vargrad"]


def test_options_reach_every_method_that_has_them():
    options = BaseOptions(samples=30, fill="black")
    methods = replace(SETTINGS, options=options).methods(["once:lime", "kernel_shap", "once:occlusion", "repeat"])
    assert methods["once:lime"] == rx.Lime(samples=30, fill="black")
    assert methods["kernel_shap"].base == rx.KernelShap(samples=30, fill="black")
    assert methods["once:occlusion"] == rx.Occlusion(fill="black")
    assert methods["repeat"] == SETTINGS.repeat


@pytest.mark.parametrize(
    ("options", "names", "unused"),
    [
        ({"samples": 30}, ["saliency", "repeat", "relax"], "samples"),
        ({"steps": 9, "fill": "blur"}, ["lime"], "steps"),
        ({"steps": 9, "samples": 9}, ["saliency"], "samples and steps"),
        ({"fill": "blur"}, ["repeat:threshold=otsu"], "fill"),
        ({"features": rx.Values()}, ["integrated_gradients"], "features"),
    ],
)
def test_options_that_no_method_has_are_refused(options, names, unused):
    with pytest.raises(ConfigurationError, match=f"^{unused}: .*{names[0]}"):
        replace(SETTINGS, options=BaseOptions(**options)).methods(names)


@pytest.mark.parametrize(
    ("options", "names", "unused"),
    [
        ({"budget": 512, "estimator": "exact"}, ["repeat"], "budget"),
        ({"budget": 512}, ["relax"], "budget"),
        ({"budget": 512}, ["repeat:lime", "once:saliency"], "budget"),
        ({"budget": 512, "base": rx.Relax(masks=9)}, ["repeat"], "budget"),
        ({"tolerance": 0.1, "estimator": "exact"}, ["repeat:threshold=otsu"], "tolerance"),
        ({"budget": 512, "tolerance": 0.1}, ["kernel_shap"], "budget and tolerance"),
    ],
)
def test_options_of_the_fast_estimator_are_refused_where_it_is_not_used(options, names, unused):
    settings = replace(SETTINGS, repeat=rx.Repeat(**options))
    with pytest.raises(ConfigurationError, match=f"^{unused}: .*fast estimator") as refusal:
        settings.methods(names)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("names", [["repeat"], ["repeat:relax"], ["relax", "repeat:votes=binary"]])
def test_options_of_the_fast_estimator_are_accepted_where_one_of_the_methods_uses_it(names):
    settings = replace(SETTINGS, repeat=rx.Repeat(budget=512, tolerance=0.1))
    assert settings.methods(names).keys() == set(names)


def test_a_target_reaches_every_method(image):
    settings = replace(SETTINGS, options=BaseOptions(target=image))
    wrapped = ["repeat", "repeat:relax", "repeat:votes=binary", "kernel_shap", "repeat:lime"]
    methods = settings.methods([*wrapped, "once:saliency", "relax"])
    assert methods["once:saliency"].target is image
    assert methods["relax"].target is image
    for name in wrapped:
        assert methods[name].base.target is image
    assert methods["repeat:votes=binary"].votes == "binary"


def test_a_list_of_names_is_split_and_each_may_be_there_once():
    assert split_names("repeat, relax,repeat:lime") == ["repeat", "relax", "repeat:lime"]
    with pytest.raises(ConfigurationError, match="twice"):
        split_names("relax, relax")
    with pytest.raises(ConfigurationError, match="gradcam"):
        split_names("repeat,gradcam")


OWN_BASE = '''
"""The mean over channels of the image."""

from dataclasses import dataclass

from repeat_xai.methods.base import answers_of_base, explain_image, explain_images


@dataclass(frozen=True, kw_only=True)
class Brightness:
    stochastic = False
    calls = 0
    samples: int = 3

    __call__ = explain_image
    stream = explain_images
    answers = answers_of_base

    def importance(self, encoder, image, *, seed):
        return image.pixels.mean(0)


NAMED = {"brightness": Brightness()}
'''


@pytest.fixture
def own_base(tmp_path, monkeypatch):
    """Add a file with a base of one's own to the folder of bases, and forget it afterwards."""
    (tmp_path / "brightness.py").write_text(OWN_BASE)
    monkeypatch.setattr(method_names.bases, "__path__", [*method_names.bases.__path__, str(tmp_path)])
    yield
    monkeypatch.undo()
    sys.modules.pop("repeat_xai.methods.bases.brightness", None)


def test_a_base_that_a_file_names_is_a_method_without_any_other_change(own_base, monkeypatch, encoder, image):
    assert "brightness" not in METHODS
    bases = dict(method_names._bases())
    assert bases.keys() == METHODS.keys() - {"repeat", "relax"} | {"brightness"}
    monkeypatch.setitem(METHODS, "brightness", bases["brightness"])
    settings = replace(SETTINGS, options=BaseOptions(samples=5))
    assert parse("once:brightness") == MethodName("brightness", "once")
    explanation = settings.method("once:brightness")(encoder, image)
    assert (explanation.importance == image.pixels.mean(0)).all()
    assert explanation.provenance["method"] == {"name": "Brightness", "samples": 5}
    assert settings.method("brightness")(encoder, image).uncertainty.amax() > 0
