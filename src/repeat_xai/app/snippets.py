"""What was asked for → the command and the Python that give the same result."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

from repeat_xai.app.job_request import Budget, Wanted
from repeat_xai.experiments.settings import Network


def command(wanted: Sequence[Wanted], photo: str, *, device: str) -> str:
    """One command for the methods of one encoder, and one for each encoder."""
    lines, several = [], len(_networks(wanted)) > 1
    for number, network in enumerate(_networks(wanted), start=1):
        mine = [one for one in wanted if one.network == network]
        words = ["repeat-xai", "explain", f"./{photo}" if photo.startswith("-") else photo]
        words += ["--out", f"results-{number}" if several else "results"]
        words += _options(network, mine, device)
        lines.append(shlex.join(words))
    return "\n\n".join(lines)


def python(wanted: Sequence[Wanted], photo: str, *, device: str) -> str:
    """A script; the last result is the last one asked for."""
    lines = ["import repeat_xai as rx"]
    for network in _networks(wanted):
        options = {"weights": network.weights, "size": network.size, "device": None if device == "auto" else device}
        given = "".join(f", {name}={code(value)}" for name, value in options.items() if value is not None)
        lines += ["", f"encoder = rx.load_encoder({code(network.name)}{given})"]
        lines += [f"image = rx.load_image({code(photo)}, encoder)"]
        for one in (one for one in wanted if one.network == network):
            lines.append(f"explanation = {code(one.explainer)}(encoder, image, seed={one.seed})")
            lines.append(f"explanation.save({code(_file(one, photo, wanted))})")
    return "\n".join(lines) + "\n"


def code(thing: object) -> str:
    """A configuration as it is written, without what it is anyway.

    >>> from repeat_xai.methods.repeat import Repeat
    >>> code(Repeat(base=Relax(masks=300), budget=512)), code(Repeat())
    ('rx.Repeat(base=rx.Relax(masks=300), budget=512)', 'rx.Repeat()')
    """
    if not is_dataclass(thing):
        return repr(thing)
    told = ((field, getattr(thing, field.name)) for field in fields(thing))
    given = ", ".join(f"{field.name}={code(value)}" for field, value in told if value != field.default)
    return f"rx.{type(thing).__name__}({given})"


def _networks(wanted: Sequence[Wanted]) -> list[Network]:
    """Each once, in their order."""
    return list(dict.fromkeys(one.network for one in wanted))


def _options(network: Network, wanted: Sequence[Wanted], device: str) -> Iterator[str]:
    """Of the command, where they are not what it takes anyway."""
    first, usual = wanted[0], Budget()
    methods = ",".join(one.method for one in wanted)
    told = [
        ("--encoder", network.name, "efficientnet_lite0"),
        ("--weights", network.weights, None),
        ("--size", network.size, None),
        ("--method", methods, "repeat"),
        ("--estimator", first.budget.estimator, usual.estimator),
        ("--budget", first.budget.pool, usual.pool),
        ("--masks", first.budget.masks, usual.masks),
        ("--repeats", first.budget.repeats, usual.repeats),
        ("--passes", first.budget.passes, usual.passes),
        ("--seed", first.seed, 0),
        ("--device", device, "auto"),
    ]
    for option, value, default in told:
        if value != default:
            yield from (option, str(value))


def _file(one: Wanted, photo: str, wanted: Sequence[Wanted]) -> str:
    """What its maps are saved as: after the photo, and by number where there are several."""
    return f"{Path(photo).stem}{f'-{wanted.index(one) + 1}' if len(wanted) > 1 else ''}.npz"
