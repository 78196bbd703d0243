"""Which pixels of an image does an encoder's representation depend on, and how sure are we that each one matters?"""

from importlib import import_module
from typing import TYPE_CHECKING

from repeat_xai.version import __version__ as __version__

if TYPE_CHECKING:
    from repeat_xai.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """Return a name of `public`, or a subpackage. It is loaded only now, so that `--help` need not load torch."""
        if name == "__all__" or not name.startswith("_"):
            public = import_module("repeat_xai.public")
            if name in ("__all__", *getattr(public, "__all__", ())):
                return getattr(public, name)
            if name in globals():
                return globals()[name]
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def __dir__() -> list[str]:
        """Return the names that a notebook completes."""
        return list(import_module("repeat_xai.public").__all__)
