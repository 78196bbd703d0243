"""A page of two hundred images of 224×224 pixels is smaller than 40 MB and ready within two seconds."""

import time
from dataclasses import replace

import numpy as np
import pytest
from pages import PHOTOS, explanation
from PIL import Image
from skimage import data

from repeat_xai.output.page.method_view import method_view
from repeat_xai.output.page.page_parts import Card, Content, ImagesPage, page_html
from repeat_xai.output.page.pictures import photo_url, thumbnail_url

IMAGES, DIFFERENT = 200, 8


def card_and_content(i):
    """Return the card and the content of an image as the paper's encoders see it."""
    photo = Image.fromarray(getattr(data, PHOTOS[i % 4])()).resize((224, 224))
    made = explanation(i, size=(224, 224), photo=np.asarray(photo))
    thumbnail = thumbnail_url(made.photo, made.uncertainty, "magma", (0.0, 0.25))
    card = Card(name="", thumbnail=thumbnail, href="", uncertainty=made.uncertainty.mean().item())
    shown = method_view(made, level=0.95, provenance=made.provenance)
    url = photo_url(made.photo, longest=512)
    return card, Content(name="", photo=url, size=made.photo.size, box=made.photo.box, facts=(), views=[shown])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a page that shows eight images many times over, which is as large as one of as many different images."""
    few = [card_and_content(i) for i in range(DIFFERENT)]
    pairs = [(f"{i}.png", *few[i % DIFFERENT]) for i in range(IMAGES)]
    path = tmp_path_factory.mktemp("many") / "index.html"
    page = ImagesPage(
        kind="screen",
        title="toy",
        level=0.95,
        cards=[replace(card, name=name, href=f"#image-{i}") for i, (name, card, _) in enumerate(pairs, start=1)],
        contents=[replace(content, name=name) for name, _, content in pairs],
    )
    with path.open("w", encoding="utf-8") as file:
        file.writelines(page_html(page))
    return path


def test_a_page_of_two_hundred_images_is_small_and_soon_ready(show, page):
    size = page.stat().st_size / 1e6
    assert size < 40
    times, lines = [], []
    for _ in range(3):
        start = time.monotonic()
        opened = show(page)
        times.append(time.monotonic() - start)
        opened.fill("#name", "199")
        opened.get_by_role("link", name="199.png").click()
        opened.locator(".reading dd").first.wait_for()
        lines.append(f"ready in {times[-1]:.2f} s, an image found and open after {time.monotonic() - start:.2f} s")
        opened.close()
    print(f"{size:.1f} MB", *lines, sep="\n")
    assert min(times) < 2
