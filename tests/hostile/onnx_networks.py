"""ONNX files that are damaged, no encoder, or too large, made from the healthy network of `onnx_cases`."""

import os

import numpy as np
from hostile.onnx_cases import NO_NETWORK, SIDE, case, constant, network, node, saved, value
from onnx import TensorProto, helper

HEALTHY = network().SerializeToString()
KINDS = TensorProto


def placed(put):
    """Return a case that has something else in place of the network."""

    def make(folder):
        path = saved(HEALTHY, folder)
        path.unlink()
        put(path)
        return path

    return make


def sparse(path):
    with path.open("wb") as file:
        file.truncate(6 * 2**30)


def nested(depth):
    """Return the bytes of a graph in a node of a graph, `depth` times; protobuf's own classes cannot write so many."""

    def field(number, content):
        length, sizes = len(content), b""
        while length > 127:
            sizes, length = sizes + bytes([length % 128 + 128]), length // 128
        return bytes([number * 8 + 2]) + sizes + bytes([length]) + content

    graph = b""
    for _ in range(depth):
        graph = field(1, field(5, field(6, graph)))  # graph.node.attribute.g
    return field(7, graph)


def typed(kind):
    """Return a network whose codes have another type."""
    return network(node("Cast", "codes", "cast", to=kind), outputs=[value("cast", ["n", 48], kind)])


def with_input(*inputs):
    return network(inputs=list(inputs))


def with_output(*nodes, tensors=(), output="x"):
    return network(*nodes, tensors=tensors, outputs=[value(output)])


def raw(content, *, dims, kind=KINDS.FLOAT):
    tensor = TensorProto(name="w", data_type=kind, dims=dims, raw_data=content)
    nodes = (node("ReduceMax", "w", "m", keepdims=0), node("Add", "codes m", "moved"))
    return network(*nodes, tensors=[tensor], last="moved")


def filled(kind, count):
    """Return a network that makes `count` numbers of one when it is loaded."""
    makers = {
        "ConstantOfShape": [node("ConstantOfShape", "shape", "big")],
        "Expand": [node("Expand", "half", "big")],
        "Tile": [node("Tile", "half", "big")],
    }
    maker = makers[kind][0]
    if kind != "ConstantOfShape":
        maker.input.append("shape")
    nodes = (maker, node("ReduceMax", "big", "m", keepdims=0), node("Add", "codes m", "moved"))
    tensors = [constant("shape", np.array([count])), constant("half", np.array([0.5], np.float32))]
    return network(*nodes, tensors=tensors, last="moved")


def recursive():
    """Return a network with a function that calls itself."""
    inner = [helper.make_node("F", ["x"], ["y"], domain="mine")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = network(helper.make_node("F", ["codes"], ["x"], domain="mine"), outputs=[value("x", ["n", 48])])
    model.functions.append(helper.make_function("mine", "F", ["x"], ["y"], inner, opsets))
    model.opset_import.append(helper.make_opsetid("mine", 1))
    return model


def changed(change):
    model = network()
    change(model)
    return model


def chain(length):
    nodes = [node("Identity", "codes", "x0"), *(node("Identity", f"x{n}", f"x{n + 1}") for n in range(length))]
    return network(*nodes, outputs=[value(f"x{length}", ["n", 48])])


def no_more(folder):
    path = saved(network(), folder)
    return path.with_name("missing.onnx")


def long_name(folder):
    return folder / ("n" * 5000 + ".onnx")


FILES = [
    case("missing", no_more, "no such ONNX file"),
    case("a name of 5,000 letters", long_name, NO_NETWORK),
    case("a FIFO", placed(os.mkfifo), "is not a regular file; give an ONNX file"),
    case("a folder", placed(os.mkdir), "is not a regular file"),
    case("a device", placed(lambda path: path.symlink_to("/dev/zero")), "is not a regular file"),
    case("a link to itself", placed(lambda path: path.symlink_to(path)), "is not a regular file"),
    case("six gigabytes of nothing", placed(sparse), "larger than 2 GiB"),
    case("empty", b"", "net.onnx"),
    case("cut to a half", HEALTHY[: len(HEALTHY) // 2], NO_NETWORK),
    case("a bit flipped", HEALTHY[:40] + bytes([HEALTHY[40] ^ 128]) + HEALTHY[41:], "net.onnx"),
    case("text", b"this is a text\n" * 99, NO_NETWORK),
    case("random bytes", np.random.default_rng(0).bytes(5000), NO_NETWORK),
    case("of the runtime's own format", b"\x20\0\0\0ORTM" + bytes(99), NO_NETWORK),
    case("nested 1,000 deep", nested(1000), NO_NETWORK),
    case("nested 30,000 deep", nested(30_000), NO_NETWORK),
    case("of an operator set of the future", network(opset=999), NO_NETWORK),
    case("of a version of the future", changed(lambda m: setattr(m, "ir_version", 10**6)), NO_NETWORK),
    case("of no operator set", changed(lambda m: m.ClearField("opset_import")), NO_NETWORK),
    case("without a graph", changed(lambda m: m.ClearField("graph")), NO_NETWORK),
]
"""Files that are not networks."""

TAKES = r"takes .*not one float tensor \[batch, channels, height, width\]"
ENDS = [
    case("no input", changed(lambda m: m.graph.ClearField("input")), "net.onnx"),
    case("two inputs", with_input(value("images", ["n", 3, SIDE, SIDE]), value("more", [1])), TAKES),
    case("an input of whole numbers", with_input(value("images", ["n", 3, 32, 32], KINDS.INT64)), "net.onnx"),
    case("an input of one axis", with_input(value("images", ["n"])), "net.onnx"),
    case("an input of five axes", with_input(value("images", ["n", 3, 32, 32, 32])), "net.onnx"),
    case("four channels", with_input(value("images", ["n", 4, 32, 32])), "4 channels"),
    case("images of no height", with_input(value("images", ["n", 3, 0, 32])), "net.onnx|size"),
    case("images of exabytes", with_input(value("images", ["n", 3, 2**60, 2**60])), r"takes images of|net.onnx"),
    case("batches of exabytes", with_input(value("images", [2**60, 3, 32, 32])), "memory|net.onnx"),
    case("any size", with_input(value("images", ["n", "c", "h", "w"])), expected="right"),
    case("batches of two", with_input(value("images", [2, 3, 32, 32])), expected="right"),
    case("no output", changed(lambda m: m.graph.ClearField("output")), "net.onnx"),
    *(
        case(f"codes of {name}", typed(kind), f"its first output is tensor\\({name}\\), not a tensor of floats")
        for name, kind in (("int64", KINDS.INT64), ("bool", KINDS.BOOL), ("string", KINDS.STRING))
    ),
    case("codes of doubles", typed(KINDS.DOUBLE), expected="right"),
    case(
        "a list of codes",
        network(
            node("SequenceConstruct", "codes", "x"),
            outputs=[helper.make_tensor_sequence_value_info("x", KINDS.FLOAT, None)],
        ),
        "not a tensor of floats",
    ),
    case("a scalar", with_output(node("ReduceSum", "codes", "x", keepdims=0)), "not a row for each"),
    case("features of four axes", with_output(node("Identity", "pooled", "x")), "choose a pool"),
    case("each row twice", with_output(node("Concat", "codes codes", "x", axis=0)), "not a row for each"),
    case("one row for all", with_output(node("ReduceMean", "codes", "x", axes=[0])), "not a row for each"),
    case(
        "codes without values",
        with_output(node("Slice", "codes a a b", "x"), tensors=[constant("a", [0]), constant("b", [1])]),
        "not one code per image",
    ),
    case("NaN", with_output(node("Log", "minus", "x"), tensors=[constant("minus", [[-1.0]])]), "net.onnx"),
    case(
        "NaN codes",
        with_output(node("Div", "codes none", "q"), node("Sub", "q q", "x"), tensors=[constant("none", np.float32(0))]),
        "NaN or infinite",
    ),
    case("always the same", with_output(node("Sub", "codes codes", "x")), "same code"),
    case(
        "a reshape that cannot be",
        with_output(node("Reshape", "codes shape", "x"), tensors=[constant("shape", [7, 7])]),
        "onnx:net.onnx fails: |not a row",
    ),
]
"""Networks with unsuitable inputs or outputs."""

INSIDE = [
    case("values cut short", raw(bytes(8), dims=[4]), "net.onnx"),
    case("values too many", raw(bytes(80), dims=[4]), "net.onnx"),
    case("a shape of exabytes", raw(b"", dims=[2**60, 2**60]), "net.onnx"),
    case("a shape below zero", raw(bytes(16), dims=[-4]), "net.onnx"),
    case("values of no type", raw(bytes(16), dims=[4], kind=0), "net.onnx"),
    case("values of type 99", raw(bytes(16), dims=[4], kind=99), "net.onnx"),
    case("an unknown operator", with_output(node("Explode", "codes", "x")), NO_NETWORK),
    case("an operator of one's own", with_output(helper.make_node("A", ["codes"], ["x"], domain="own")), NO_NETWORK),
    case("a circle", with_output(node("Add", "codes y", "x"), node("Identity", "x", "y")), NO_NETWORK),
    case("an input from nowhere", with_output(node("Add", "codes nowhere", "x")), NO_NETWORK),
    case("a name twice", with_output(node("Abs", "images", "codes"), node("Neg", "codes", "x")), NO_NETWORK),
    case("a megabyte of words", changed(lambda m: setattr(m, "doc_string", "word " * 2**18)), expected="right"),
    case("a thousand nodes", chain(1000), expected="right"),
]
"""Networks that are invalid, or large, inside."""

BOMBS = [
    case("a function that calls itself", recursive(), NO_NETWORK),
    *(case(f"a terabyte by {kind}", filled(kind, 2**38), "net.onnx") for kind in ("ConstantOfShape", "Expand", "Tile")),
    *(case(f"exabytes by {kind}", filled(kind, 2**61), "net.onnx") for kind in ("ConstantOfShape", "Expand")),
]
"""Networks that would exhaust memory."""

UNSTEADY = [
    case("noise", with_output(node("RandomNormalLike", "codes", "r"), node("Add", "codes r", "x")), expected="right"),
    case(
        "dropout",
        with_output(
            node("Dropout", "codes half yes", "x"),
            tensors=[constant("half", np.float32(0.5)), constant("yes", True)],
        ),
        expected="right",
    ),
    case(
        "the place in the batch",
        with_output(node("CumSum", "codes axis", "x"), tensors=[constant("axis", 0)]),
        expected="right",
    ),
    case(
        "the other images",
        with_output(node("ReduceMean", "codes", "m", axes=[0]), node("Sub", "codes m", "y"), node("Exp", "y", "x")),
        expected="right",
    ),
]
"""Networks whose codes vary."""
