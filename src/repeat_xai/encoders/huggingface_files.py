"""Where transformers finds a model and all that is saved with it: in a folder, in the hub's cache, or on the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from repeat_xai.encoders.hub import why_unreachable
from repeat_xai.errors import EncoderError
from repeat_xai.files.reading import read_json

MAX_JSON_BYTES = 2**26
"""Size of a configuration: names of classes and of tensors fill some millions of bytes."""


def source_of(name: str, *, local: bool) -> dict[str, Any]:
    """Return the arguments by which transformers finds a model, without running code that comes with it."""
    return {"pretrained_model_name_or_path": name, "trust_remote_code": False, "local_files_only": local}


def local_source_of(model: Any) -> dict[str, Any]:
    """Return the arguments by which transformers finds on this machine what a model object was loaded from."""
    origin = model.name_or_path
    if not origin:
        raise ValueError("it was not loaded from anywhere")
    if Path(origin).is_dir():
        expect_own_files(Path(origin))
    return source_of(origin, local=True)


def open_tokeniser(source: dict[str, Any]) -> Any:
    """Return the tokeniser that transformers finds by these arguments, or raise transformers' own error."""
    import transformers

    return transformers.AutoTokenizer.from_pretrained(**source)


def expect_own_files(folder: Path) -> None:
    """Raise a ValueError unless all that transformers may open is regular files in the folder, and its JSON is sound.

    A folder of the hub's cache holds links to files beside it.
    """
    home = folder.resolve()
    homes = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
    names = [entry.name for entry in home.iterdir()] if (home / "config.json").exists() else []
    for path in (*home.glob("*config.json"), *home.glob("*.index.json")):
        content = read_json(path, max_bytes=MAX_JSON_BYTES)
        weight_map = content.get("weight_map", {})
        names += weight_map.values() if isinstance(weight_map, dict) else ()
        names += (content["transformers_weights"],) if content.get("transformers_weights") else ()
    for name in set(map(str, names)):
        target = (home / name).resolve()
        if not any(target.is_relative_to(own) for own in homes):
            raise ValueError(f"{name[:100]!r} leads out of the folder")
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise ValueError(f"{name[:100]!r} is not a regular file")


def why_hub_unreachable(name: str) -> str:
    """Return why the hub cannot be asked, or an empty text; raise an EncoderError if it does not have the model."""
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        return why_unreachable(name)
    except HFValidationError as error:
        raise EncoderError(f"hf:{name}: no such folder, and not the name of a model on the hub") from error
    except RepositoryNotFoundError as error:
        raise EncoderError(
            f"hf:{name}: no such folder, and no such model on the hub, or one that needs a login"
        ) from error
