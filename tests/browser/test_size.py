"""Two hundred images of 224×224 pixels with three maps each: under 40 MB, and ready within two seconds."""

import time
from dataclasses import replace

import numpy as np
import pytest
from pages import PHOTOS, explanation
from PIL import Image
from skimage import data

from repeat_xai.output.page.page_template_data import Card, Content, Page, html
from repeat_xai.output.page.pictures import photo_url, thumbnail_url
from repeat_xai.output.page.view import view

IMAGES, DIFFERENT = 200, 8


def made(i):
    """A card and its content, of an image as the paper's encoders see it."""
    photo = Image.fromarray(getattr(data, PHOTOS[i % 4])()).resize((224, 224))
    found = explanation(i, size=(224, 224), photo=np.asarray(photo))
    thumbnail = thumbnail_url(found.photo, found.uncertainty, "magma", (0.0, 0.25))
    card = Card(name="", thumbnail=thumbnail, href="", uncertainty=found.uncertainty.mean().item())
    shown = view(found, level=0.95, provenance=found.provenance)
    url = photo_url(found.photo, longest=512)
    return card, Content(name="", photo=url, size=found.photo.size, box=found.photo.box, facts=(), views=[shown])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Eight images many times over: as large as so many different ones."""
    few = [made(i) for i in range(DIFFERENT)]
    pairs = [(f"{i}.png", *few[i % DIFFERENT]) for i in range(IMAGES)]
    path = tmp_path_factory.mktemp("many") / "index.html"
    page = Page(
        kind="screen",
        title="toy",
        lead="",
        cards=[replace(card, name=name, href=f"#image-{i}") for i, (name, card, _) in enumerate(pairs, start=1)],
        contents=(replace(content, name=name) for name, _, content in pairs),
    )
    with path.open("w", encoding="utf-8") as file:
        file.writelines(html(page))
    return path


def test_two_hundred_images_are_small_and_quick(show, page):
    size = page.stat().st_size / 1e6
    assert size < 40
    took, told = [], []
    for _ in range(3):
        start = time.monotonic()
        opened = show(page)
        took.append(time.monotonic() - start)
        opened.fill("#name", "199")
        opened.get_by_role("link", name="199.png").click()
        opened.locator(".reading dd").first.wait_for()
        told.append(f"ready in {took[-1]:.2f} s, an image found and open after {time.monotonic() - start:.2f} s")
        opened.close()
    print(f"{size:.1f} MB", *told, sep="\n")
    assert min(took) < 2
