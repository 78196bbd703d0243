"""The command and the Python script that compute the same explanations as a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

from repeat_xai.app.job_request import JobRequest, JobSettings, used_settings
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.methods.repeat import Repeat


def command_snippet(requests: Sequence[JobRequest], photo: str, *, device: str) -> str:
    """Return one command for each encoder, which explains the photo by all methods asked for with that encoder."""
    commands, encoder_specs = [], _encoder_specs(requests)
    for number, spec in enumerate(encoder_specs, start=1):
        of_encoder = [request for request in requests if request.encoder_spec == spec]
        words = ["repeat-xai", "explain", f"./{photo}" if photo.startswith("-") else photo]
        words += ["--out", f"results-{number}" if len(encoder_specs) > 1 else "results"]
        words += _options(spec, of_encoder, device)
        commands.append(shlex.join(words))
    return "\n\n".join(commands)


def python_snippet(requests: Sequence[JobRequest], photo: str, *, device: str) -> str:
    """Return a script that computes and saves each explanation."""
    lines = ["import repeat_xai as rx"]
    for spec in _encoder_specs(requests):
        options = {"weights": spec.weights, "size": spec.size, "device": None if device == "auto" else device}
        keywords = "".join(f", {name}={as_code(value)}" for name, value in options.items() if value is not None)
        lines += ["", f"encoder = rx.load_encoder({as_code(spec.name)}{keywords})"]
        lines += [f"image = rx.load_image({as_code(photo)}, encoder)"]
        for request in (request for request in requests if request.encoder_spec == spec):
            lines.append(f"explanation = {as_code(request.explainer)}(encoder, image, seed={request.seed})")
            lines.append(f"explanation.save({as_code(_file_name(request, photo, requests))})")
    return "\n".join(lines) + "\n"


def as_code(value: object) -> str:
    """Return the code that creates a configuration, without the fields that have their default.

    >>> from repeat_xai import Relax, Repeat
    >>> as_code(Repeat(base=Relax(masks=300), budget=512)), as_code(Repeat())
    ('rx.Repeat(base=rx.Relax(masks=300), budget=512)', 'rx.Repeat()')
    """
    if not is_dataclass(value):
        return repr(value)
    values = ((field, getattr(value, field.name)) for field in fields(value))
    keywords = ", ".join(f"{field.name}={as_code(part)}" for field, part in values if part != field.default)
    return f"rx.{type(value).__name__}({keywords})"


def _encoder_specs(requests: Sequence[JobRequest]) -> list[EncoderSpec]:
    """Return each encoder once, in the order of the requests."""
    return list(dict.fromkeys(request.encoder_spec for request in requests))


def _options(spec: EncoderSpec, requests: Sequence[JobRequest], device: str) -> Iterator[str]:
    """Yield the command's options, without those that have their default or that no method uses."""
    settings, defaults = requests[0].settings, JobSettings()
    methods = ",".join(request.method for request in requests)
    explainers = [request.explainer for request in requests]
    has_budget = any(isinstance(explainer, Repeat) and explainer.is_fast for explainer in explainers)
    used = used_settings((request.method for request in requests), settings.estimator)
    options = [
        ("--encoder", spec.name, "efficientnet_lite0"),
        ("--weights", spec.weights, None),
        ("--size", spec.size, None),
        ("--method", methods, "repeat"),
        ("--estimator", settings.estimator if used.estimator else defaults.estimator, defaults.estimator),
        ("--budget", settings.budget if has_budget else defaults.budget, defaults.budget),
        ("--masks", settings.masks if used.masks else defaults.masks, defaults.masks),
        ("--repeats", settings.repeats if used.repeats else defaults.repeats, defaults.repeats),
        ("--passes", settings.passes if used.passes else defaults.passes, defaults.passes),
        ("--seed", requests[0].seed, 0),
        ("--device", device, "auto"),
    ]
    for option, value, default in options:
        if value != default:
            yield from (option, str(value))


def _file_name(request: JobRequest, photo: str, requests: Sequence[JobRequest]) -> str:
    """Return the name of the file for the maps: that of the photo, numbered where there are several explanations."""
    number = f"-{requests.index(request) + 1}" if len(requests) > 1 else ""
    return f"{Path(photo).stem}{number}.npz"
