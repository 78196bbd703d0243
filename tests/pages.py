"""Synthetic explanations for pages: maps like those of REPEAT and RELAX, made without an encoder."""

import json

import numpy as np
import PIL.Image
import torch
import torch.nn.functional as F
from skimage import data

from repeat_xai.output.image_results import ResultFiles
from repeat_xai.output.results_folder import ImageOutcome
from repeat_xai.types import Explanation, Photo

REPEAT = {"name": "Repeat", "base": {"name": "Relax", "masks": 1000}, "repeats": 10, "votes": "weighted"}
RELAX = {"name": "Relax", "masks": 1000}
PHOTOS = ("chelsea", "coffee", "rocket", "astronaut")


def smooth(generator, size, cells=7):
    """Return a random field as smooth as maps made with masks of 7×7 cells."""
    grid = torch.randn(1, 1, cells, cells, generator=generator)
    fine = 0.02 * torch.randn(1, 1, *size, generator=generator)
    return (F.interpolate(grid, size, mode="bicubic") + F.avg_pool2d(fine, 3, 1, 1))[0, 0]


def explanation(seed=0, *, name="cat.png", size=(48, 48), votes=True, photo=None, box=None):
    """Return an explanation of a photo of which the encoder sees the middle."""
    generator = torch.Generator().manual_seed(seed)
    picture = getattr(data, PHOTOS[seed % 4])()[::2, ::2] if photo is None else photo
    rows, columns = picture.shape[:2]
    side = 0.9 * min(rows, columns)
    left, top = (columns - side) / 2, (rows - side) / 2
    seen = Photo(
        name=name,
        picture=np.ascontiguousarray(picture),
        size=(rows, columns),
        box=box or (left, top, left + side, top + side),
        digest=f"{seed}",
    )
    about = {"encoder": {"name": "toy"}, "seed": seed, "photo": {"name": name}}
    if not votes:
        importance, uncertainty = 0.8 + 0.01 * smooth(generator, size), 0.002 * smooth(generator, size).exp()
        return Explanation(
            importance=importance,
            uncertainty=uncertainty,
            vote_share=None,
            photo=seen,
            provenance=about | {"method": RELAX},
        )
    share = (torch.sigmoid(4 * smooth(generator, size)) * 200).round() / 200
    p = share * (0.9 + 0.1 * torch.sigmoid(smooth(generator, size)))
    return Explanation(
        importance=p, uncertainty=p * (1 - p), vote_share=share, photo=seen, provenance=about | {"method": REPEAT}
    )


def saved(made, folder, stem, level=0.95):
    """Write the files of an explanation as a run leaves them, and return its outcome."""
    folder.mkdir(parents=True, exist_ok=True)
    files = ResultFiles.of(folder, stem)
    made.save(files.maps)
    PIL.Image.new("RGB", (8, 8)).save(files.panel)
    files.provenance.write_text(json.dumps({**made.provenance, "level": level}))
    return ImageOutcome(folder / made.photo.name, files, made.provenance)
