"""Modules whose forward does what no encoder should: it changes settings of torch, breaks an assumption, or fails.

All of them wrap the same healthy network. A fault is a function of the module and its images that returns codes.
"""

import os
import random
import threading
import time
import warnings

import numpy as np
import torch
from hostile.verdicts import Case
from torch import nn


def healthy():
    """Return the network that all faulty modules wrap, for images of any size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = (nn.Conv2d(3, 4, 5, stride=3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 8))
        return nn.Sequential(*layers).eval()


class Faulty(nn.Module):
    """A healthy network whose forward misbehaves, and which counts its calls."""

    def __init__(self, behave):
        super().__init__()
        self.body, self.behave, self.calls = healthy(), behave, 0

    def forward(self, images):
        self.calls += 1
        return self.behave(self, images)


def afterwards(act):
    """Do something else, after the right codes have been computed."""

    def behave(module, images):
        codes = module.body(images)
        act(module)
        return codes

    return behave


def before(act):
    """Do something else, then return the right codes."""

    def behave(module, images):
        act(module)
        return module.body(images)

    return behave


def given(change):
    """Return the right codes, changed by a function."""
    return lambda module, images: change(module.body(images))


def from_call(number, behave):
    """Misbehave from the call of this number on."""
    return lambda module, images: behave(module, images) if module.calls >= number else module.body(images)


def failing(make):
    """Raise the error that the function makes."""

    def behave(module, images):
        raise make()

    return behave


class Wordless(Exception):
    """An error whose message cannot be made."""

    def __str__(self):
        raise RuntimeError("no words either")


class Marked(torch.Tensor):
    """A subclass of tensors."""


def endless(module, images):
    return endless(module, images)


def written(module, images):
    codes = module.body(images.clone())
    images.zero_()
    return codes


def reused(module, images):
    codes = module.body(images)
    if getattr(module, "kept", None) is None or len(module.kept) != len(codes):
        module.kept = torch.empty_like(codes, requires_grad=False)
    return module.kept.copy_(codes.detach())


def hooked(module):
    module.body.register_forward_hook(lambda *_: None)


def forked(module):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def by_a_thread(module, images):
    codes = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: codes.append(module.body(images.detach())))
    thread.start()
    thread.join()
    return codes[0]


def with_gradients(module, images):
    with torch.enable_grad():
        return module.body(images)


def for_inference(module, images):
    with torch.inference_mode():
        return module.body(images)


def other_width(module, images):
    return module.body(images)[:, : 1 + module.calls % 8]


def other_type(module, images):
    module.double()
    return module.body(images)


def autocast_on(module):
    torch.set_autocast_enabled("cpu", True)


def other_threads(module):
    torch.set_num_threads(torch.get_num_threads() % 2 + 1)


def other_numpy(module):
    np.random.seed(3)


def other_python(module):
    random.seed(3)


def call(function, *arguments):
    """Call a function that does not depend on the module, such as one of torch's."""
    return lambda module: function(*arguments)


RIGHT = {
    "sets the default type": before(call(torch.set_default_dtype, torch.float64)),
    "sets the default type afterwards": afterwards(call(torch.set_default_dtype, torch.float16)),
    "sets the default device": afterwards(call(torch.set_default_device, "meta")),
    "switches gradients on": before(call(torch.set_grad_enabled, True)),
    "switches gradients off": afterwards(call(torch.set_grad_enabled, False)),
    "enters no_grad for good": afterwards(lambda module: torch.no_grad().__enter__()),
    "switches gradients off first": before(call(torch.set_grad_enabled, False)),
    "seeds torch": before(call(torch.manual_seed, 3)),
    "seeds numpy": before(other_numpy),
    "seeds python": before(other_python),
    "draws numbers it does not use": before(call(torch.rand, 7)),
    "sets the number of threads": afterwards(other_threads),
    "demands determinism": before(call(torch.use_deterministic_algorithms, True)),
    "warns of what is not deterministic": before(call(torch.set_deterministic_debug_mode, "warn")),
    "multiplies in lower precision": before(call(torch.set_float32_matmul_precision, "medium")),
    "looks for anomalies": afterwards(call(torch.set_anomaly_enabled, True)),
    "switches autocast on": afterwards(autocast_on),
    "writes into its input": written,
    "hangs a hook at each call": before(hooked),
    "adds a layer at each call": before(lambda module: module.add_module(f"extra{module.calls}", nn.Linear(2, 2))),
    "keeps everything it sees": lambda module, images: module.body(images) + 0 * len(vars(module)),
    "prints": before(lambda module: print("hello")),
    "warns": before(lambda module: warnings.warn("hello", stacklevel=1)),
    "sleeps": before(lambda module: time.sleep(0.002)),
    "forks": before(forked),
    "runs in a thread": by_a_thread,
    "changes the type of its weights": other_type,
    "switches itself to training": before(lambda module: module.train()),
    "returns the same memory each time": reused,
    "returns codes with gradients": with_gradients,
    "returns codes made for inference": for_inference,
    "returns double codes": given(lambda codes: codes.double()),
    "returns codes in odd order": given(lambda codes: codes.t().contiguous().t()),
    "returns a tensor of another class": given(lambda codes: codes.as_subclass(Marked)),
    "returns a parameter": given(lambda codes: nn.Parameter(codes.detach())),
    "is noisy in the last digit": given(lambda codes: codes * (1 + 1e-8 * torch.rand(1))),
}
"""Modules that are explained as the healthy network is."""

BLIND = {
    "switches gradients off first",
    "runs in a thread",
    "returns the same memory each time",
    "returns codes made for inference",
    "returns a parameter",
}
"""Names of modules whose codes carry no gradient, so that methods that need gradients refuse them."""

WRONG_SHAPE = r"returns \[[\d, ]*\] for \d+ images, not one code per image"
NOT_FINITE = "NaN|infinite"
REFUSED = {
    "returns None": (lambda module, images: None, "returns NoneType; wrap it"),
    "returns a number": (lambda module, images: 1.5, "returns float"),
    "returns a text": (lambda module, images: "codes", "returns str"),
    "returns a list": (given(list), "returns list"),
    "returns a tuple": (given(lambda codes: (codes, codes)), "returns tuple"),
    "returns a dictionary": (given(lambda codes: {"codes": codes}), "returns dict"),
    "returns an array": (given(lambda codes: codes.detach().numpy()), "returns ndarray"),
    "returns a generator": (given(lambda codes: (code for code in codes)), "returns generator"),
    "returns a scalar": (given(lambda codes: codes.sum()), WRONG_SHAPE),
    "returns a number an image": (given(lambda codes: codes.sum(1)), WRONG_SHAPE),
    "returns its images": (lambda module, images: images, WRONG_SHAPE),
    "returns no rows": (given(lambda codes: codes[:0]), WRONG_SHAPE),
    "returns a row too many": (given(lambda codes: torch.cat((codes, codes[:1]))), WRONG_SHAPE),
    "returns codes without values": (given(lambda codes: codes[:, :0]), WRONG_SHAPE),
    "returns whole numbers": (given(lambda codes: (100 * codes).long()), r"codes of torch.int64, not floats"),
    "returns truths": (given(lambda codes: codes > 0), r"codes of torch.bool, not floats"),
    "returns complex codes": (given(lambda codes: codes * 1j), r"codes of torch.complex64, not floats"),
    "returns sparse codes": (given(lambda codes: codes.to_sparse()), r"layout torch.sparse_coo"),
    "returns sparse rows": (given(lambda codes: codes.detach().to_sparse_csr()), r"layout torch.sparse_csr"),
    "returns nested codes": (given(lambda codes: torch.nested.nested_tensor(list(codes.detach()))), "a nested tensor"),
    "returns ragged codes": (
        given(lambda codes: torch.nested.nested_tensor(list(codes.detach()), layout=torch.jagged)),
        "a nested tensor",
    ),
    "returns codes without numbers": (given(lambda codes: codes.to("meta")), "codes on meta, but"),
    "returns NaN": (given(lambda codes: codes * torch.nan), NOT_FINITE),
    "returns infinite codes": (given(lambda codes: codes / 0), NOT_FINITE),
    "returns NaN from the third call": (from_call(3, given(lambda codes: codes * torch.nan)), NOT_FINITE),
    "returns another width each time": (other_width, r"returns codes of \d+ values, then of \d+"),
    "returns another width from the second call": (from_call(2, given(lambda codes: codes[:, :5])), r"of 8 values"),
    "returns a dictionary from the third call": (from_call(3, given(lambda codes: {})), "returns dict"),
    "returns zeros": (given(lambda codes: codes * 0), "same code|code of zeros"),
    "leaves the program": (failing(lambda: SystemExit(3)), "it raises SystemExit$"),
    "leaves as a generator does": (failing(GeneratorExit), "it raises GeneratorExit$"),
    "stops an iteration": (failing(StopIteration), "StopIteration$"),
    "stops another iteration": (failing(StopAsyncIteration), "StopAsyncIteration$"),
    "calls itself for ever": (endless, "maximum recursion depth exceeded"),
    "raises an error without text": (failing(ValueError), "ValueError$"),
    "raises an error that fails": (failing(Wordless), "Wordless$"),
    "raises an error of many lines": (failing(lambda: ValueError("\n\nfirst\nsecond\n" * 9)), "first$"),
    "raises an error of a megabyte": (failing(lambda: ValueError("x" * 2**20)), r": x{400}$"),
    "raises an error that steers the terminal": (failing(lambda: ValueError("\x1b[2Jred")), r":  \[2Jred$"),
    "fails an assertion": (failing(lambda: AssertionError("shapes")), "shapes$"),
    "raises several errors": (failing(lambda: ExceptionGroup("many", [ValueError()])), "many"),
    "lacks memory": (failing(MemoryError), "out of memory"),
    "lacks memory in torch's words": (failing(lambda: torch.OutOfMemoryError("no")), "out of memory"),
    "fails from the third call": (from_call(3, failing(lambda: OSError("unplugged"))), "unplugged$"),
    "reshapes to a fixed batch": (lambda module, images: module.body(images).view(3, -1, 8), "fails|returns"),
    "wants other channels": (lambda module, images: nn.functional.conv2d(images, torch.ones(1, 5, 1, 1)), "channels"),
    "wants a second argument": (lambda module: None, "argument"),
}
"""Modules that are refused, and a part of the message."""

UNSTEADY = {
    "always drops": given(lambda codes: nn.functional.dropout(codes, 0.5)),
    "drops pixels": lambda module, images: module.body(nn.functional.dropout(images, 0.2)),
    "adds noise": given(lambda codes: codes + 0.1 * torch.randn_like(codes)),
    "adds noise of numpy": given(lambda codes: codes + float(np.random.rand())),
    # over eight powers of ten, so that two draws are hardly ever within the one per cent that goes unnoticed
    "adds noise of python": given(lambda codes: codes * 10 ** random.uniform(0, 8)),
    "scales every batch at random": given(lambda codes: codes * (1 + torch.rand(()))),
    "counts its calls": lambda module, images: module.body(images) + module.calls,
    "depends on the place in the batch": given(lambda codes: codes + torch.arange(len(codes))[:, None]),
    "depends on the other images": given(lambda codes: codes - codes.mean(0) + 1e-3 * codes),
    "scales by the largest of the batch": given(lambda codes: codes / codes.detach().abs().amax()),
    "turns the batch round": given(lambda codes: codes.flip(0)),
    "mixes up the batch": given(lambda codes: codes.roll(1, 0)),
    "learns at each call": lambda module, images: module.body[4].bias.data.add_(0.1) * 0 + module.body(images),
}
"""Modules that give one image different codes, and are explained with a warning."""


def case(name, behave, expected="right", message=""):
    return Case(name=name, make=lambda folder: Faulty(behave), expected=expected, message=message)


CASES = [
    *(case(name, behave) for name, behave in RIGHT.items()),
    *(case(name, behave, "refused", message) for name, (behave, message) in REFUSED.items()),
]
UNSTEADY_CASES = [case(name, behave) for name, behave in UNSTEADY.items()]
