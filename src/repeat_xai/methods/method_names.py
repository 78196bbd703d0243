"""Every method by its name: the registry, and the one parser of names.

NAME                   a method of the registry; a base without uncertainty of its own is run several times by `Spread`
repeat:BASE            REPEAT over another stochastic base
once:BASE              one run of a base, without uncertainty
repeat:OPTION=VALUE    REPEAT with another `threshold`, `repeats` or `votes`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple, final

from repeat_xai.engine.targets import Target
from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.methods import bases
from repeat_xai.methods.base import Base, Method, is_deterministic
from repeat_xai.methods.bases.features import Features
from repeat_xai.methods.fast_estimator import FEWEST_MASKS
from repeat_xai.methods.many_targets import with_target
from repeat_xai.methods.perturbations import InputDropout, Perturbation
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.spread import Spread


def _bases() -> Iterator[tuple[str, Base]]:
    """Yield the methods that the files of `methods/bases` name."""
    for module in iter_modules(bases.__path__, f"{bases.__name__}."):
        yield from getattr(import_module(module.name), "NAMED", {}).items()


METHODS: dict[str, Any] = {"repeat": Repeat(), "relax": Relax(), **dict(_bases())}
"""Every method with its default options."""
REPEAT_OPTIONS = {"threshold": str, "repeats": int, "votes": str}
"""Options that may be part of a name, as in `repeat:threshold=otsu`."""


RELAX_OPTIONS = frozenset({"masks", "cells", "keep", "mask_style", "similarity", "chunk"})
VOTE_OPTIONS = frozenset({"repeats", "threshold", "votes", "level"})
SHARED_OPTIONS = RELAX_OPTIONS | VOTE_OPTIONS | {"estimator", "perturbation", "passes"}
"""Options that several methods share: those of RELAX and its masks, of votes, of REPEAT over RELAX, and of passes."""


class MethodName(NamedTuple):
    """The parts of a method's name."""

    base: str
    """The method itself, or the base that it wraps."""
    wrapper: str = ""
    """`repeat` for REPEAT over the base, `once` for one run of it, or nothing."""
    options: Mapping[str, Any] = {}
    """Options of REPEAT."""


class BaseOptions(NamedTuple):
    """Options for those base methods that have them; None keeps the method's default."""

    samples: int | None = None
    steps: int | None = None
    fill: str | None = None
    features: Features | None = None
    channels: str | None = None
    target: Target | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not None."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@final
@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """How much work methods are given, and with which options, when they are made from names."""

    repeat: Repeat = Repeat()
    relax: Relax = Relax()
    options: BaseOptions = BaseOptions()
    by: Perturbation | None = InputDropout()
    """What changes between the passes of methods without uncertainty of their own."""
    passes: int = 10

    def method(self, name: str) -> Method:
        """Return the method of this name."""
        base, wrapper, options = parse(name)
        if base in ("repeat", "relax"):
            method = self.relax if base == "relax" and not wrapper else replace(self.repeat, **options)
            return method if self.options.target is None else with_target(method, self.options.target)
        chosen = replace(METHODS[base], **{option: self.options.given[option] for option in self._used(base)})
        if wrapper == "repeat":
            return replace(self.repeat, base=chosen, estimator="exact")
        return chosen if wrapper == "once" else Spread(base=chosen, by=self.by, passes=self.passes)

    def methods(self, names: Iterable[str]) -> dict[str, Method]:
        """Return the methods of these names; refuse options that none of them uses."""
        names = list(names)
        used = {option for name in names for option in self._used(parse(name).base)}
        if unused := sorted(self.options.given.keys() - used):
            raise ConfigurationError(f"{' and '.join(unused)}: not an option of {', '.join(names)}")
        methods = {name: self.method(name) for name in names}
        if not any(isinstance(method, Repeat) and method.is_fast for method in methods.values()):
            self._expect_no_fast_options()
        return methods

    def _expect_no_fast_options(self) -> None:
        """Refuse options that only the fast estimator of REPEAT uses."""
        values = {"budget": self.repeat.budget, "tolerance": self.repeat.tolerance}
        if unused := [name for name, value in values.items() if value not in ("auto", None)]:
            raise ConfigurationError(
                f"{' and '.join(unused)}: only the fast estimator uses this, which is for REPEAT over RELAX with "
                f"{FEWEST_MASKS} masks or more; leave it out"
            )

    def expect_used(self, names: Iterable[str], given: Iterable[str]) -> None:
        """Refuse options of REPEAT, RELAX or the passes that were given although none of the methods uses them."""
        names = list(names)
        used = {option for name in names for option in _shared_options(self.method(name), parse(name).options)}
        if unused := [option for option in given if option in SHARED_OPTIONS and option not in used]:
            raise ConfigurationError(f"{' and '.join(unused)}: not an option of {', '.join(names)}")

    def _used(self, base: str) -> set[str]:
        """Return which of the given options a base has; of these, RELAX and REPEAT have the target."""
        if base in ("repeat", "relax"):
            return {"target"} & self.options.given.keys()
        return {field.name for field in fields(METHODS[base])} & self.options.given.keys()


def _shared_options(method: Method, named: Iterable[str]) -> frozenset[str]:
    """Return which of the shared options change the result of a method, except those that its name sets itself."""
    if isinstance(method, Spread):
        return frozenset({"perturbation", "passes"})
    if isinstance(method, Relax):
        return RELAX_OPTIONS
    if not isinstance(method, Repeat):
        return frozenset()
    over_relax = RELAX_OPTIONS | {"estimator"} if isinstance(method.base, Relax) else frozenset()
    return (VOTE_OPTIONS | over_relax) - frozenset(named)


def parse(name: str) -> MethodName:
    """Return the parts of a method's name; refuse a name that is not known.

    >>> parse("repeat:kernel_shap"), parse("repeat:threshold=otsu").options
    (MethodName(base='kernel_shap', wrapper='repeat', options={}), {'threshold': 'otsu'})
    """
    wrapper, _, rest = name.rpartition(":")
    option, equals, value = rest.partition("=")
    if wrapper == "repeat" and equals:
        choose("option of REPEAT", option, REPEAT_OPTIONS)
        try:
            return MethodName("repeat", options={option: REPEAT_OPTIONS[option](value)})
        except ValueError as error:
            raise ConfigurationError(f"unknown method '{name}'; {option} must be a whole number") from error
    choose("method", rest, METHODS)
    if wrapper not in ("", "repeat", "once") or (wrapper and rest == "repeat") or (wrapper, rest) == ("once", "relax"):
        raise ConfigurationError(f"unknown method '{name}'; REPEAT over another base is repeat:NAME")
    return MethodName(rest, wrapper)


def split_names(text: str) -> list[str]:
    """Return the names in a list such as `repeat,relax,repeat:kernel_shap`; each must be known and be there once."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        parse(name)
    if len(set(names)) < len(names):
        raise ConfigurationError(f"a method is named twice in '{text}'")
    return names


def stochastic_bases() -> list[str]:
    """Return the names of the bases, other than RELAX, that REPEAT can be run over."""
    return [
        name for name, method in METHODS.items() if name not in ("repeat", "relax") and not is_deterministic(method)
    ]
