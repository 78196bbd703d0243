"""Options for the target: what an image is compared with in place of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from repeat_xai.cli.options import ADVANCED
from repeat_xai.data.image_files import find_images
from repeat_xai.data.images import ImageProtocol, load_image
from repeat_xai.engine.targets import Contrast, Target
from repeat_xai.errors import ConfigurationError
from repeat_xai.types import Encoder, Image
from repeat_xai.types.text import Text

TargetOption = Annotated[
    Path | None,
    typer.Option(
        metavar="IMAGE|FOLDER",
        help="Another image, or a folder of images, that the images are compared with in place of themselves. The maps "
        "then show which pixels make them similar to it. A folder stands for the mean of its images' codes.",
        rich_help_panel=ADVANCED,
    ),
]
TargetTextOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="A text that the images are compared with, for encoders of images and texts such as CLIP.",
        rich_help_panel=ADVANCED,
    ),
]
TargetNotOption = Annotated[
    Path | None,
    typer.Option(
        metavar="IMAGE|FOLDER",
        help="Image or folder to contrast the target with. The maps then show which pixels make the images more "
        "similar to the target than to this.",
        rich_help_panel=ADVANCED,
    ),
]


def chosen_target(
    encoder: Encoder, path: Path | None, text: str | None, away: Path | None, *, root: Path, protocol: ImageProtocol
) -> Target | None:
    """Return the target that the options stand for; None is the image itself."""
    if path is not None and text is not None:
        raise ConfigurationError("target and target-text: only one of them can be given")
    if path is None and text is None:
        if away is not None:
            raise ConfigurationError("target-not needs a target or a target-text to contrast it with")
        return None
    toward = Text(text) if text is not None else _images(encoder, root / (path or ""), protocol)
    return toward if away is None else Contrast(toward=toward, away=_images(encoder, root / away, protocol))


def _images(encoder: Encoder, path: Path, protocol: ImageProtocol) -> Image | tuple[Image, ...]:
    """Return the image at a path, or the images in a folder."""
    images = tuple(load_image(image, encoder, protocol=protocol) for image in find_images([path]).images)
    return images if path.is_dir() else images[0]
