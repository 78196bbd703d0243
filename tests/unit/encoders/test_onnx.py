"""Encoders run by ONNX Runtime: networks in ONNX files, and torch modules that are exported."""

import sys
import warnings

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders import onnx_export
from repeat_xai.engine import runtimes

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def export(module, path, *, shape=(2, 3, 24, 20), dynamic=False):
    shapes = ({0: torch.export.Dim("batch"), 2: torch.export.Dim("height"), 3: torch.export.Dim("width")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            (torch.randn(shape),),
            path,
            dynamo=True,
            verbose=False,
            dynamic_shapes=shapes if dynamic else None,
        )
    return f"onnx:{path}"


def photo_like(encoder):
    return rx.load_image(torch.randn(3, 24, 20, generator=torch.Generator().manual_seed(0)), encoder)


@pytest.mark.slow
def test_a_file_gives_the_networks_codes_for_any_number_of_images(network, tmp_path):
    encoder = rx.load_encoder(export(network, tmp_path / "net.onnx"))
    assert (encoder.name, encoder.preprocessing.size, encoder.batch) == ("onnx:net.onnx", (24, 20), 2)
    assert "sha256" in encoder.weights
    images = torch.randn(5, 3, 24, 20)
    with torch.no_grad():
        torch.testing.assert_close(encoder(images), network(images), atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_a_file_is_explained_as_its_network_is(network, tmp_path, estimator):
    by_file = rx.load_encoder(export(network, tmp_path / "net.onnx"))
    by_torch = rx.load_encoder(network, runtime="torch")
    image = photo_like(by_file)
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=60), repeats=3, budget=256)
    a, b = method(by_file, image, seed=0), method(by_torch, image, seed=0)
    assert (a.importance - b.importance).abs().mean() < 1e-3
    assert a.provenance["ran"]["runtime"] == "its own"
    assert a.provenance["encoder_calls"] == b.provenance["encoder_calls"]


@pytest.mark.slow
@pytest.mark.parametrize("method", [rx.KernelShap(samples=60), rx.Lime(samples=60), rx.Occlusion(window=8, stride=4)])
def test_methods_without_gradients_explain_a_file_as_its_network(network, tmp_path, method):
    by_file = rx.load_encoder(export(network, tmp_path / "net.onnx"))
    image = photo_like(by_file)
    a, b = (method.importance(encoder, image, seed=0) for encoder in (by_file, rx.load_encoder(network)))
    torch.testing.assert_close(a, b, atol=1e-4 * b.abs().max().item(), rtol=0)


@pytest.mark.slow
def test_methods_with_gradients_refuse_a_file(network, tmp_path):
    encoder = rx.load_encoder(export(network, tmp_path / "net.onnx"))
    with pytest.raises(rx.RepeatError, match=r"onnx:net.onnx gives no gradients, which Saliency needs"):
        rx.Saliency()(encoder, photo_like(encoder), seed=0)


@pytest.mark.slow
def test_a_file_that_takes_any_size_is_given_the_size_that_is_chosen(tmp_path):
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    source = export(network, tmp_path / "any.onnx", dynamic=True)
    assert rx.load_encoder(source, pool="avg").preprocessing.size == (224, 224)
    encoder = rx.load_encoder(source, pool="avg", size=32)
    images = torch.randn(3, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(encoder(images), network(images).mean((2, 3)), atol=1e-5, rtol=1e-4)
    with pytest.raises(rx.RepeatError, match="choose a pool"):
        rx.Relax(masks=5)(rx.load_encoder(source, size=32), rx.load_image(images[0], encoder), seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("onnx:missing.onnx", {}, "no such ONNX file"),
        ("onnx:bad.onnx", {}, "cannot be read as an ONNX network"),
        ("onnx:flat.onnx", {}, r"takes tensor\(float\) \[2, 12\], not one float tensor"),
        ("onnx:net.onnx", {"size": 32}, "takes images of 24×20, not of 32×32"),
        ("onnx:net.onnx", {"pool": "middle"}, "pool"),
        (
            "onnx:net.onnx",
            {"preprocessing": rx.Preprocessing(size=(24, 20), resize=24, mean=(0.0,), std=(1.0,))},
            "3 chann",
        ),
        ("onnx:net.onnx", {"weights": "x"}, "has its own weights"),
        ("onnx:net.onnx", {"device": "cpu", "precision": "float16"}, "in the precision it has"),
    ],
)
def test_a_file_that_is_no_encoder_is_refused(network, tmp_path, monkeypatch, source, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.onnx").write_text("no network")
    if "flat" in source:
        export(nn.Linear(12, 4), tmp_path / "flat.onnx", shape=(2, 12))
    if "net" in source:
        export(network, tmp_path / "net.onnx")
    with pytest.raises(rx.RepeatError, match=message) as caught:
        rx.load_encoder(source, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_cpu_runs_real_budgets_by_onnx_runtime_and_small_ones_by_torch(network):
    encoder, plain = rx.load_encoder(network), rx.load_encoder(network, runtime="torch")
    image = photo_like(encoder)
    a, b = (rx.Relax(masks=600)(e, image, seed=0) for e in (encoder, plain))
    assert (a.provenance["ran"]["runtime"], b.provenance["ran"]["runtime"]) == ("onnxruntime", "torch")
    torch.testing.assert_close(a.importance, b.importance, atol=1e-5, rtol=0)
    assert rx.Relax(masks=50)(encoder, image, seed=0).provenance["ran"]["runtime"] == "torch"


@pytest.mark.slow
def test_each_kind_of_mask_has_its_own_graph(network):
    encoder, plain = rx.load_encoder(network), rx.load_encoder(network, runtime="torch")
    image = photo_like(encoder)
    for grid in (rx.Grid(cells=3, style="rise"), rx.Grid(cells=3), rx.Grid(cells=5)):
        a, b = (rx.Relax(masks=600, grid=grid).importance(e, image, seed=0) for e in (encoder, plain))
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_the_description_of_weights_includes_files_beside_the_network(tmp_path):
    network = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    first = rx.load_encoder(export(network, tmp_path / "net.onnx")).weights
    assert "net.onnx.data" in first
    network[1].weight.data.neg_()
    assert rx.load_encoder(export(network, tmp_path / "net.onnx")).weights != first


@pytest.mark.slow
def test_too_little_memory_to_export_halves_the_batch(network, monkeypatch):
    sizes, exported = [], onnx_export.exported

    def narrow(module, probe):
        sizes.append(len(probe["which"]))
        if sizes[-1] > 100:
            raise MemoryError
        return exported(module, probe)

    monkeypatch.setattr(onnx_export, "exported", narrow)
    encoder = rx.load_encoder(network)
    image = photo_like(encoder)
    explanation = rx.Relax(masks=600)(encoder, image, seed=0)
    assert explanation.provenance["ran"]["runtime"] == "onnxruntime"
    assert sizes[0] > 100 >= sizes[-1]
    expected = rx.Relax(masks=600).importance(rx.load_encoder(network, runtime="torch"), image, seed=0)
    torch.testing.assert_close(explanation.importance.double(), expected, atol=1e-5, rtol=0)


def test_a_tuple_is_refused_where_the_module_would_be_exported():
    class Pair(nn.Module):
        """Return a tuple only for the images of this test, so that loading does not notice."""

        def forward(self, images):
            codes = images.mean((2, 3))
            return (codes, images) if images.shape[2:] == (24, 20) else codes

    encoder = rx.load_encoder(Pair())
    with pytest.raises(rx.RepeatError, match="returns tuple"):
        rx.Relax(masks=600)(encoder, photo_like(encoder), seed=0)


@pytest.mark.slow
def test_changed_weights_are_exported_again(network):
    encoder = rx.load_encoder(network)
    image = photo_like(encoder)
    before = rx.Relax(masks=600).importance(encoder, image, seed=0)
    for change in (lambda w: w.data.mul_(-1), lambda w: w.data.copy_(w.data.flip(0))):
        change(network[3].weight)
        after = rx.Relax(masks=600).importance(encoder, image, seed=0)
        assert not torch.equal(after, before)
        expected = rx.Relax(masks=600).importance(rx.load_encoder(network, runtime="torch"), image, seed=0)
        torch.testing.assert_close(after, expected, atol=1e-5, rtol=0)
        before = after


class ValueDependent(nn.Module):
    """A module whose codes depend on a number that is read in Python, which no exporter can follow."""

    table = (0.0,) * 100

    def forward(self, images):
        return images.mean((2, 3)) + self.table[len(str(float(images.sum())))]


class ExportDependent(nn.Module):
    """A module that returns other codes while it is exported."""

    def forward(self, images):
        codes = images.mean((2, 3))
        return codes + 1 if torch.compiler.is_exporting() else codes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "message"), [(ValueDependent(), "cannot be exported"), (ExportDependent(), "gives other codes")]
)
def test_a_module_that_cannot_be_exported_is_run_by_torch(module, message):
    encoder = rx.load_encoder(module)
    image = photo_like(encoder)
    assert rx.Relax(masks=600)(encoder, image, seed=0).provenance["ran"]["runtime"] == "torch"
    with pytest.raises(rx.RepeatError, match=message) as caught:
        rx.Relax(masks=600)(rx.load_encoder(module, runtime="onnxruntime"), image, seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_exporting_leaves_the_module_as_it_was(network):
    network.train()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    rx.Relax(masks=600)(rx.load_encoder(network), photo_like(rx.load_encoder(network)), seed=0)
    assert network.training
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())


@pytest.mark.slow
def test_an_exported_network_is_freed_with_its_encoder(network):
    encoder = rx.load_encoder(network)
    rx.Relax(masks=600)(encoder, photo_like(encoder), seed=0)
    before = len(runtimes._ready)
    del encoder
    assert len(runtimes._ready) < before


@pytest.mark.slow
def test_a_network_that_gives_other_codes_when_exported_is_refused(network, monkeypatch):
    monkeypatch.setattr(onnx_export, "MAX_DIFFERENCE", 0.0)
    with pytest.raises(rx.RepeatError, match="other codes"):
        onnx_export.exported(network.eval(), {"input": torch.randn(4, 3, 24, 20)})


@pytest.mark.slow
def test_too_little_memory_to_run_halves_the_batch(network, monkeypatch):
    run, sizes = onnx_export.run_session, []

    def narrow(session, inputs):
        sizes.append(len(inputs["which"]))
        if len(sizes) == 2:
            raise RuntimeError("bad allocation")
        return run(session, inputs)

    monkeypatch.setattr(onnx_export, "run_session", narrow)
    encoder = rx.load_encoder(network)
    image = photo_like(encoder)
    explanation = rx.Relax(masks=600, chunk=64)(encoder, image, seed=0)
    assert (sizes[:3], sizes[-1]) == ([64, 64, 32], 32)
    assert explanation.provenance["encoder_calls"] == 601


@pytest.mark.slow
def test_without_onnx_runtime_torch_runs_everything_but_files(network, tmp_path, monkeypatch):
    source = export(network, tmp_path / "net.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    encoder = rx.load_encoder(network)
    assert rx.Relax(masks=600)(encoder, photo_like(encoder), seed=0).provenance["ran"]["runtime"] == "torch"
    with pytest.raises(rx.RepeatError, match="pip install onnxruntime"):
        rx.load_encoder(source)
