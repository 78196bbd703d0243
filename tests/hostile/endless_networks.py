"""ONNX networks whose run never ends, made from the healthy network of `onnx_cases`."""

import numpy as np
from hostile.onnx_cases import constant, network, node, saved, value
from onnx import TensorProto, helper

BOXES = 400_000
"""Boxes among which the stubborn network looks for overlaps, in a time that grows with their square: some minutes."""


def looping(folder):
    """Return the path of a network with a loop that has neither a number of rounds nor an end."""
    body = helper.make_graph(
        [node("Identity", "go", "on"), node("Identity", "x_in", "x_out")],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("x_in")],
        [value("on", [], TensorProto.BOOL), value("x_out")],
    )
    loop = helper.make_node("Loop", ["", "yes", "codes"], ["looped"], body=body)
    return saved(network(loop, tensors=[constant("yes", True)], last="looped"), folder)


def stubborn(folder):
    """Return the path of a network with one operator that takes minutes, which ONNX Runtime cannot end.

    The operator keeps those of the boxes that overlap with none before; no two of these do.
    """
    left = np.arange(BOXES, dtype=np.float32)
    boxes = np.stack((left, left, left + 0.5, left + 0.5), axis=1)[None]
    tensors = [
        constant("boxes", boxes),
        constant("zeros", np.zeros((1, 1, BOXES), np.float32)),
        constant("all", np.array([BOXES])),
        constant("zero", np.float32(0)),
    ]
    nodes = (
        # The scores depend on the images, so that the operator does not run when the network is opened.
        node("ReduceMean", "codes", "mean", keepdims=0),
        node("Add", "zeros mean", "scores"),
        node("NonMaxSuppression", "boxes scores all", "chosen"),
        node("Cast", "chosen", "numbers", to=TensorProto.FLOAT),
        node("ReduceMean", "numbers", "number", keepdims=0),
        node("Mul", "number zero", "nothing"),
        node("Add", "codes nothing", "slow"),
    )
    return saved(network(*nodes, tensors=tensors, last="slow"), folder)
