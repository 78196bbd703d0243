"""Files of weights that are wrong, run code, refer to other files or do not fit, made from healthy ones."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from collections import OrderedDict

import numpy as np
import safetensors.torch
import torch
from hostile.verdicts import Case
from torch import nn

import repeat_xai as rx

NAME, SIDE = "timm:test_resnet", 32
DAMAGED = "cannot be read as weights|damaged or would run code"
NO_FILE = "is not a regular file; give a file of weights"
NO_TENSORS = "holds no tensors by name; save the module's state_dict"
NO_FIT = r"the weights do not fit the encoder: \d+ tensors "
NOT_SAFE = "not a safetensors file, or cut short"


def explained(path):
    """Return the codes of the encoder with these weights."""
    encoder = rx.load_encoder(NAME, weights=path, size=SIDE)
    return encoder(torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0)))


def healthy():
    return {
        k: v.clone()
        for k, v in rx.load_encoder(NAME, weights="random", size=SIDE).module.body.network.state_dict().items()
    }


def saved(change=dict, name="w.pt", **how):
    """Return a function that saves weights by torch, changed by `change`."""

    def make(folder):
        torch.save(change(healthy()), folder / name, **how)
        return folder / name

    return make


def written(content, name="w.pt"):
    def make(folder):
        (folder / name).write_bytes(content)
        return folder / name

    return make


def placed(put, name="w.pt"):
    def make(folder):
        put(folder / name)
        return folder / name

    return make


def damaged(damage, name="w.pt"):
    """Return a function that saves valid weights and then changes their bytes."""

    def make(folder):
        path = saved()(folder) if name == "w.pt" else safe()(folder)
        path.write_bytes(damage(path.read_bytes()))
        return path

    return make


def safe(change=dict, name="w.safetensors"):
    def make(folder):
        tensors = {key: tensor.contiguous() for key, tensor in change(healthy()).items()}
        safetensors.torch.save_file(tensors, folder / name)
        return folder / name

    return make


def header(fields, content=b"", *, length=None, name="w.safetensors"):
    """Return a function that writes a safetensors file with this header, whose stated length may be wrong."""
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return written(struct.pack("<Q", len(text) if length is None else length) + text + content, name)


def entry(dtype="F32", shape=(4,), offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


class Runs:
    """An object that runs a function when it is unpickled."""

    def __init__(self, function, *arguments):
        self.what = (function, arguments)

    def __reduce__(self):
        return self.what


def first_with(change):
    """Return a function that changes the first float weight."""

    def changed(weights):
        name = next(k for k, v in weights.items() if v.is_floating_point() and v.ndim == 4)
        return weights | {name: change(weights[name])}

    return changed


def itself(weights):
    weights["state_dict"] = weights
    return weights


def circle(weights):
    inner = {"state_dict": None}
    inner["state_dict"] = {"model": inner}
    return inner


def in_a_list(weights):
    wrapped = [weights]
    wrapped.append(wrapped)
    return {"state_dict": wrapped}


def wrapped(depth):
    """Return a pickle of a state dict inside `depth` others, which a pickler could not write."""
    key = pickle.dumps("model", protocol=2)[2:-1]  # without the opcodes of the beginning and the end
    return b"\x80\x02" + (b"}" + key) * depth + b"}" + b"s" * depth + b"."


def zipped(content, compression=zipfile.ZIP_STORED, names=("archive/data.pkl",)):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name in names:
            archive.writestr(name, content)
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


def as_tar(folder):
    with tarfile.open(folder / "w.pt", "w") as archive:
        for name in ("storages", "tensors", "pickle", "../../escaped"):
            content = pickle.dumps({}, protocol=2)
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return folder / "w.pt"


def scripted(folder):
    torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)), folder / "w.pt")
    return folder / "w.pt"


def sparse_file(path):
    with path.open("wb") as file:
        file.truncate(6 * 2**30)


def case(name, make, message="", expected="refused"):
    return Case(name=name, make=make, expected=expected, message=message)


PLACES = [
    case("missing", placed(lambda path: None), "no such file of weights"),
    case("a FIFO", placed(os.mkfifo), NO_FILE),
    case("a FIFO of safetensors", placed(os.mkfifo, "w.safetensors"), NO_FILE),
    case("a folder", placed(os.mkdir), NO_FILE),
    case("a device", placed(lambda path: path.symlink_to("/dev/zero")), NO_FILE),
    case("a link to itself", placed(lambda path: path.symlink_to(path)), NO_FILE),
    case("a name of 5,000 letters", lambda folder: folder / ("w" * 5000), "cannot be read"),
    case("empty", written(b""), "is empty; copy it again"),
    case("six gigabytes of nothing", placed(sparse_file), DAMAGED),
    case("six gigabytes of nothing, safe", placed(sparse_file, "w.safetensors"), f"{NOT_SAFE}|cannot be read"),
]
PICKLES = [
    case("runs a command", saved(lambda w: w | {"x": Runs(os.system, "touch /tmp/never")}), "would run code"),
    case("evaluates", saved(lambda w: Runs(eval, "1/0")), "would run code"),
    case("runs code in a list", saved(lambda w: w | {"x": [Runs(os.mkdir, "/tmp/never")]}), "would run code"),
    case("runs code, in the old way", saved(lambda w: Runs(exec, "1"), _use_new_zipfile_serialization=False), DAMAGED),
    case("runs code, bare", written(pickle.dumps(Runs(os.system, "touch /tmp/never"))), DAMAGED),
    case("a whole module", saved(lambda w: nn.Linear(2, 2)), "would run code"),
    case("arrays of numpy", saved(lambda w: {k: v.numpy() for k, v in w.items()}), DAMAGED + "|" + NO_TENSORS),
    case("contains itself", saved(itself), NO_TENSORS),
    case("in a circle of two", saved(circle), NO_TENSORS),
    case("in a list in itself", saved(in_a_list), NO_TENSORS),
    case("wrapped 20,000 times", written(zipped(wrapped(20_000))), DAMAGED + "|" + NO_TENSORS),
    case("wrapped 20,000 times, bare", written(wrapped(20_000)), DAMAGED + "|" + NO_TENSORS),
    case("a number", saved(lambda w: 5), NO_TENSORS),
    case("a tensor", saved(lambda w: torch.zeros(9)), NO_TENSORS),
    case("an empty dictionary", saved(lambda w: {}), NO_TENSORS),
    case("numbers for names", saved(lambda w: dict(enumerate(w.values()))), NO_TENSORS),
    case(
        "a checkpoint of an optimiser",
        saved(lambda w: torch.optim.Adam([nn.Parameter(torch.ones(1))]).state_dict()),
        NO_TENSORS,
    ),
    case("tensors of sparse kind", saved(first_with(lambda t: t.to_sparse())), NO_TENSORS),
    case("tensors without numbers", saved(first_with(lambda t: t.to("meta"))), NO_TENSORS),
    case("nested tensors", saved(first_with(lambda t: torch.nested.nested_tensor([t, t]))), DAMAGED + "|" + NO_TENSORS),
    case("complex numbers", saved(first_with(lambda t: t * 1j)), NO_FIT + "of another type"),
    case("whole numbers", saved(first_with(lambda t: t.long())), NO_FIT + "of another type"),
    case("one number shown as many", saved(first_with(lambda t: torch.zeros(1).expand(2**40))), "claim more values"),
    case(
        "one number shown as exabytes", saved(lambda w: {"x": torch.zeros(1).expand(2**30, 2**30)}), "claim more values"
    ),
    case("turned shapes", saved(first_with(lambda t: t.transpose(0, 1).contiguous())), NO_FIT + "of another shape"),
    case("a key too few", saved(lambda w: dict(list(w.items())[1:])), NO_FIT + "missing"),
    case("a key too many", saved(lambda w: w | {"more": torch.ones(2)}), NO_FIT + "unknown, first 'more'"),
    case("a key of two lines", saved(lambda w: w | {"a\n\x1b[31mb": torch.ones(2)}), r"first 'a\\n\\x1b\[31mb'"),
    case("a key of a megabyte", saved(lambda w: w | {"k" * 2**20: torch.ones(2)}), r"first 'k{100}'$"),
    case(
        "mixed prefixes",
        saved(lambda w: {("module." if n % 2 else "") + k: v for n, (k, v) in enumerate(w.items())}),
        NO_FIT,
    ),
    case("of another network", saved(lambda w: nn.Linear(3, 3).state_dict()), NO_FIT),
    case("wrapped by a script", saved(lambda w: {"epoch": 3, "model": {"state_dict": w}}), expected="right"),
    case(
        "of a parallel module", saved(lambda w: OrderedDict((f"module.{k}", v) for k, v in w.items())), expected="right"
    ),
    case("in the old way", saved(_use_new_zipfile_serialization=False), expected="right"),
    case(
        "doubles",
        saved(lambda w: {k: v.double() if v.is_floating_point() else v for k, v in w.items()}),
        expected="right",
    ),
]
"""Files of torch."""
ARCHIVES = [
    case("cut to a half", damaged(lambda content: content[: len(content) // 2]), DAMAGED),
    case("cut by a byte", damaged(lambda content: content[:-1]), DAMAGED),
    case("of zeros", damaged(lambda content: bytes(len(content))), DAMAGED),
    case("a text", written(b"these are weights\n" * 99), DAMAGED),
    case("not in UTF-8", written(b"\xff\xfe\x80 weights"), DAMAGED),
    case("random bytes", written(np.random.default_rng(0).bytes(5000)), DAMAGED),
    case("the old tar format", as_tar, DAMAGED),
    case("a scripted module", scripted, DAMAGED + "|" + NO_TENSORS),
    case("a ZIP bomb", written(zipped(bytes(2**28), zipfile.ZIP_DEFLATED)), "is packed"),
    case("a ZIP of nothing", written(zipped(b"")), DAMAGED),
    case("a ZIP that climbs out", written(zipped(b"x", names=("../../data.pkl", "/etc/data.pkl"))), DAMAGED),
    case("safe weights under another name", safe(name="w.pt"), expected="right"),
]
SAFE = [
    case("a header of exabytes", header({}, length=2**63), NOT_SAFE),
    case("a header past the end", header({}, length=4096), NOT_SAFE),
    case("a header of no length", header(b"", length=0), NOT_SAFE),
    case("a header of a list", header(b"[1, 2]"), NOT_SAFE),
    case("a header nested deep", header(b'{"a":' * 50_000 + b"1" + b"}" * 50_000), NOT_SAFE),
    case("a header not in UTF-8", header(b'{"\xff": 1}'), NOT_SAFE),
    case("eight bytes", written(bytes(8), "w.safetensors"), NOT_SAFE),
    case("offsets past the end", header({"a": entry()}), NOT_SAFE),
    case("offsets that overlap", header({"a": entry(), "b": entry(offsets=(8, 24))}, bytes(24)), NOT_SAFE),
    case("offsets backwards", header({"a": entry(offsets=(16, 0))}, bytes(16)), NOT_SAFE),
    case("a shape below zero", header({"a": entry(shape=(-4,))}, bytes(16)), NOT_SAFE),
    case("a shape that overflows", header({"a": entry(shape=(2**40, 2**40))}, bytes(16)), NOT_SAFE),
    case("an unknown type", header({"a": entry("F99")}, bytes(16)), NOT_SAFE),
    case(
        "a name twice",
        header(b'{"a":%b,"a":%b}' % ((json.dumps(entry()).encode(),) * 2), bytes(16)),
        f"{NOT_SAFE}|{NO_FIT}",
    ),
    case("no tensors", header({"__metadata__": {}}), NO_TENSORS),
    case("cut short", damaged(lambda content: content[:-9], "w.safetensors"), NOT_SAFE),
    case("safe weights", safe(), expected="right"),
]
NOT_FINITE = [
    case(name, saved(first_with(lambda tensor, number=number: tensor * number)), "NaN or infinite codes")
    for name, number in (("NaN", float("nan")), ("infinite", float("inf")))
]
"""Weights that load, and give codes that cannot be explained."""
CASES = [*PLACES, *PICKLES, *ARCHIVES, *SAFE]
