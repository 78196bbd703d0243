"""Shapes stand in types and are checked while testing.

The package names its shapes for the type checker alone, so that it runs without jaxtyping; here the same names are
made real, and every call of the package is checked against them.
"""

import builtins

import jaxtyping
from torch import Tensor

names = {name: getattr(jaxtyping, name) for name in ("Bool", "Float", "Int", "Int8", "UInt8", "UInt16")}
vars(builtins).update(names, Tensor=Tensor, Map=jaxtyping.Float[Tensor, "height width"])
jaxtyping.install_import_hook("repeat_xai", "beartype.beartype")
