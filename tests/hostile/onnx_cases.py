"""ONNX files that contain wrong values or refer to other files, made from a healthy network: the means of squares.

Each case writes `net.onnx` into a folder beside `secret`, which no network may open, and returns its path.
"""

import os

import numpy as np
import onnx
import torch
from hostile.verdicts import Case
from onnx import TensorProto, helper, numpy_helper

import repeat_xai as rx

SIDE = 32
MEANS = np.arange(4, dtype=np.float32)
OUTSIDE = "no regular file in the network's folder"
NO_NETWORK = "cannot be read as an ONNX network"


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def value(name, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, content):
    return numpy_helper.from_array(np.array(content), name)


def network(*nodes, inputs=None, outputs=None, tensors=(), opset=17, last="codes"):
    """Return the means of squares of 8×8 pixels, with further nodes, of which `last` is the output."""
    body = [
        node("AveragePool", "images", "pooled", kernel_shape=[8, 8], strides=[8, 8]),
        node("Flatten", "pooled", "codes"),
    ]
    inputs = [value("images", ["n", 3, SIDE, SIDE])] if inputs is None else inputs
    outputs = [value(last, ["n", "width"])] if outputs is None else outputs
    graph = helper.make_graph([*body, *nodes], "means", inputs, outputs, list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def saved(model, folder):
    """Write the network, a model or bytes, beside a file that it may read and one that it may not."""
    (folder / "in").mkdir()
    (folder / "secret").write_bytes(MEANS.tobytes())
    path = folder / "in" / "net.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    (path.parent / "w.bin").write_bytes(MEANS.tobytes())
    (path.parent / "sub").mkdir()
    (path.parent / "sub" / "w.bin").write_bytes(MEANS.tobytes())
    return path


def kept_in(location, name="w", *more, dims=(4,)):
    """Return a tensor whose values are in another file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, entry in (("location", location), *more):
        tensor.external_data.add(key=key, value=entry)
    return tensor


def added(tensor):
    """Return a network that adds the mean of a tensor to its codes, which changes them."""
    nodes = (node("ReduceMean", "w", "m", keepdims=0), node("Mul", "m zero", "z"), node("Add", "codes z", "moved"))
    return network(*nodes, tensors=[tensor, constant("zero", np.float32(0))], last="moved")


def unused(location, *more, dims=(4,)):
    return network(tensors=[kept_in(location, "w", *more, dims=dims)])


def graph_of(tensor):
    return helper.make_graph([node("Identity", "w", "x")], "inner", [], [value("x")], [tensor])


def conditional(tensor):
    """Return a choice between two subgraphs that nothing uses."""
    inner = graph_of(tensor)
    choice = node("If", "yes", "y", then_branch=inner, else_branch=inner)
    return network(choice, tensors=[constant("yes", True)])


def in_sparse(tensor):
    model = network()
    sparse = model.graph.sparse_initializer.add(dims=[9])
    sparse.values.CopyFrom(tensor)
    sparse.indices.CopyFrom(constant("", np.arange(4)))
    return model


def in_function(tensor):
    inner = [helper.make_node("Constant", [], ["y"], value=tensor)]
    function = helper.make_function("mine", "F", [], ["y"], inner, [helper.make_opsetid("", 17)])
    model = network()
    model.functions.append(function)
    return model


def in_training(tensor):
    model = network()
    model.training_info.add().initialization.CopyFrom(graph_of(tensor))
    return model


def in_list(tensor):
    model = network()
    attribute = model.graph.node[0].attribute.add(name="more", type=onnx.AttributeProto.TENSORS)
    attribute.tensors.append(tensor)
    return model


def in_loop(tensor):
    body = helper.make_graph(
        [node("Identity", "go", "on")],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL)],
        [value("on", [], TensorProto.BOOL)],
        [tensor],
    )
    return network(node("Loop", "times go_on", "", body=body), tensors=[constant("times", 1), constant("go_on", True)])


PLACES = {
    "an initialiser": added,
    "an unused initialiser": lambda tensor: network(tensors=[tensor]),
    "a sparse initialiser": in_sparse,
    "a constant": lambda tensor: network(helper.make_node("Constant", [], ["c"], value=tensor)),
    "a subgraph": conditional,
    "a loop": in_loop,
    "a function": in_function,
    "training": in_training,
    "a list of tensors": in_list,
}
ELSEWHERE = {
    "above": "../secret",
    "above by a detour": "sub/../../secret",
    "absolute": "/etc/hostname",
    "a device": "/dev/zero",
    "a pipe of the process": "/proc/self/fd/0",
    "the folder": ".",
    "a subfolder": "sub",
    "nothing": "missing.bin",
    "empty": "",
    "a NUL": "a\0b",
    "a web address": "https://example.org/w.bin",
    "a share of Windows": "\\\\server\\w.bin",
    "a name of 5,000 letters": "w" * 5000,
    "an address in memory": "*/_ORT_MEM_ADDR_/*",
    "lines": "w\n.bin",
}
PREPARED = {
    "a FIFO": lambda folder: os.mkfifo(folder / "there"),
    "a link out": lambda folder: (folder / "there").symlink_to(folder.parent / "secret"),
    "a link to a device": lambda folder: (folder / "there").symlink_to("/dev/zero"),
    "a link to itself": lambda folder: (folder / "there").symlink_to("there"),
    "a link to nothing": lambda folder: (folder / "there").symlink_to("nowhere"),
}
BYTES = {
    "an offset below zero": ("offset", "-4"),
    "an offset past the end": ("offset", "4096"),
    "an offset in words": ("offset", "four"),
    "an offset with a point": ("offset", "1.5"),
    "an offset of other digits": ("offset", "\u0661"),
    "an offset of 5,000 digits": ("offset", "9" * 5000),
    "a length below zero": ("length", "-16"),
    "a length past the end": ("length", "17"),
    "a length of exabytes": ("length", str(2**63)),
    "a second place": ("location", "../secret"),
    "a length too short for its shape": ("length", "8"),
}


def prepared(prepare):
    def make(folder):
        path = saved(unused("there"), folder)
        prepare(path.parent)
        return path

    return make


def in_memory(folder):
    """Write a file whose offset ONNX Runtime would take for an address, so that only its name shows the problem."""
    path = saved(added(kept_in("*/_ORT_MEM_ADDR_/*", "w", ("offset", "4096"), ("length", "16"))), folder)
    (path.parent / "*" / "_ORT_MEM_ADDR_").mkdir(parents=True)
    (path.parent / "*" / "_ORT_MEM_ADDR_" / "*").write_bytes(bytes(8192))
    return path


def out_by_a_folder(folder):
    path = saved(unused("out/secret"), folder)
    (path.parent / "out").symlink_to(folder)
    return path


def linked_inside(folder):
    path = saved(added(kept_in("there")), folder)
    (path.parent / "there").symlink_to("w.bin")
    return path


def explained(path):
    """Return a map of the network's codes."""
    encoder = rx.load_encoder(f"onnx:{path}", size=SIDE)
    pixels = torch.randn(3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    return rx.Relax(masks=12)(encoder, rx.load_image(pixels, encoder), seed=0).importance


def case(name, make, message="", expected="refused"):
    """Return a case of a model, of bytes, or of a function that writes both into a folder."""
    write = make if callable(make) else lambda folder: saved(make, folder)
    return Case(name=name, make=write, expected=expected, message=message)


EXTERNAL = [
    *(case(f"elsewhere in {name}", place(kept_in("../secret")), OUTSIDE) for name, place in PLACES.items()),
    *(case(f"a device in {name}", place(kept_in("/dev/zero")), OUTSIDE) for name, place in PLACES.items()),
    *(case(f"tensor in {name}", unused(location), OUTSIDE) for name, location in ELSEWHERE.items()),
    *(case(f"tensor in {name}", prepared(prepare), OUTSIDE) for name, prepare in PREPARED.items()),
    *(case(name, added(kept_in("w.bin", "w", entry)), "tensor|net.onnx: ") for name, entry in BYTES.items()),
    case("an address in memory that is a file", in_memory, OUTSIDE),
    case("a folder that leads out", out_by_a_folder, OUTSIDE),
    case("no place at all", network(tensors=[TensorProto(name="w", data_type=1, dims=[4], data_location=1)]), OUTSIDE),
    case(
        "a name that steers the terminal", network(tensors=[kept_in("../secret", "\x1b[2J\nred")]), r"\\x1b\[2J\\nred"
    ),
    *(
        case(name, added(kept_in(location)), expected="right")
        for name, location in (("beside", "w.bin"), ("by a dot", "./w.bin"), ("below", "sub/w.bin"))
    ),
    case("a link to its neighbour", linked_inside, expected="right"),
    case("unused, beside", unused("w.bin"), expected="right"),
    case("overlapping", network(tensors=[kept_in("w.bin", str(n)) for n in range(2)]), expected="right"),
    case(
        "ten thousand times the same", network(tensors=[kept_in("w.bin", f"w{n}") for n in range(10_000)]), "", "right"
    ),
]
"""Networks that keep tensors in further files."""
