"""Tests that ordinary image files are decoded as a person would see them, and bad ones refused clearly."""

import io
import os
import struct
import zlib

import numpy as np
import PIL.Image
import pytest
import torch

import repeat_xai as rx
from repeat_xai.types import Preprocessing


class UncalledEncoder:
    """An encoder that is never called: its inputs are 32×32 pixels, which are not normalised."""

    name, weights, pool = "uncalled", "none", "none"
    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, channels=3, resize=(32, 32)):
        zero, one = (0.0,) * channels, (1.0,) * channels
        self.preprocessing = Preprocessing(size=(32, 32), resize=resize, mean=zero, std=one)

    def __call__(self, images):
        raise AssertionError


ramp = np.linspace(0, 1, 32)[None].repeat(32, 0)
RED = np.dstack([ramp, ramp.T, 0 * ramp])
ENCODER = UncalledEncoder()


def picture():
    return PIL.Image.fromarray((RED * 255).round().astype(np.uint8))


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "webp", "jpg"])
def test_ordinary_files_are_decoded(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    picture().save(path, **({"lossless": True} if suffix == "webp" else {"quality": 95} if suffix == "jpg" else {}))
    pixels = rx.load_image(path, ENCODER).pixels
    atol = 0.06 if suffix == "jpg" else 0.003
    torch.testing.assert_close(pixels, torch.from_numpy(RED).permute(2, 0, 1).float(), atol=atol, rtol=0)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "CMYK", "1", "YCbCr", "PA"])
def test_every_mode_is_decoded_as_pillow_does(tmp_path, mode):
    kind = {"CMYK": "tiff", "PA": "tiff", "YCbCr": "jpg"}.get(mode, "png")
    path = tmp_path / f"a.{kind}"
    source = picture().convert(mode) if mode != "PA" else picture().convert("P")
    source.save(path)
    expected = np.asarray(PIL.Image.open(path).convert("RGB")) / 255
    torch.testing.assert_close(
        rx.load_image(path, ENCODER).pixels, torch.from_numpy(expected).permute(2, 0, 1).float(), atol=1e-6, rtol=0
    )


def test_transparent_parts_become_white(tmp_path):
    clear = picture().convert("RGBA")
    clear.putalpha(PIL.Image.fromarray((ramp * 255).astype(np.uint8)))
    clear.save(tmp_path / "a.png")
    alpha = np.floor(ramp * 255)[..., None] / 255
    expected = torch.from_numpy(RED * alpha + (1 - alpha)).permute(2, 0, 1).float()
    torch.testing.assert_close(rx.load_image(tmp_path / "a.png", ENCODER).pixels, expected, atol=0.01, rtol=0)


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_pictures_of_16_bits_keep_all_their_levels(tmp_path, suffix):
    deep = (20_000 + ramp * 200).round().astype(np.uint16)
    PIL.Image.fromarray(deep).save(tmp_path / f"a.{suffix}")
    pixels = rx.load_image(tmp_path / f"a.{suffix}", ENCODER).pixels
    torch.testing.assert_close(pixels[1], torch.from_numpy(deep / 65535.0).float(), atol=1e-7, rtol=0)
    assert len(pixels[0].unique()) > 20


def test_a_tiff_of_floats_is_read(tmp_path):
    PIL.Image.fromarray(ramp.astype(np.float32)).save(tmp_path / "a.tiff")
    pixels = rx.load_image(tmp_path / "a.tiff", ENCODER).pixels
    torch.testing.assert_close(pixels[2], torch.from_numpy(ramp).float())


@pytest.mark.parametrize(("value", "message"), [(np.nan, "NaN"), (3.0, "rescale")])
def test_a_tiff_of_floats_out_of_range_is_refused(tmp_path, value, message):
    PIL.Image.fromarray(np.where(ramp > 0.9, value, ramp).astype(np.float32)).save(tmp_path / "a.tiff")
    with pytest.raises(rx.RepeatError, match=rf"a\.tiff: .*{message}"):
        rx.load_image(tmp_path / "a.tiff", ENCODER)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_applied(tmp_path, orientation):
    source = picture()
    exif = source.getexif()
    exif[0x0112] = orientation
    source.save(tmp_path / "a.png", exif=exif)
    upright = {
        1: RED,
        2: RED[:, ::-1],
        3: RED[::-1, ::-1],
        4: RED[::-1],
        5: RED.transpose(1, 0, 2),
        6: np.rot90(RED, -1),
        7: RED[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(RED),
    }
    expected = torch.from_numpy(upright[orientation].copy()).permute(2, 0, 1).float()
    torch.testing.assert_close(rx.load_image(tmp_path / "a.png", ENCODER).pixels, expected, atol=0.003, rtol=0)


def test_an_encoder_of_grey_images_gets_one_channel(tmp_path):
    picture().save(tmp_path / "a.png")
    pixels = rx.load_image(tmp_path / "a.png", UncalledEncoder(channels=1)).pixels
    expected = torch.from_numpy(np.asarray(picture().convert("L")) / 255.0).float()
    torch.testing.assert_close(pixels, expected[None])


def test_arrays_tensors_and_pillow_images_are_loaded():
    bytes_ = np.asarray(picture())
    image = rx.load_image(picture(), ENCODER)
    for source in (bytes_, bytes_ / 255.0):
        assert torch.equal(rx.load_image(source, ENCODER).pixels, image.pixels)
    tensor = rx.load_image(image.pixels, ENCODER)
    assert torch.equal(tensor.pixels, image.pixels)
    np.testing.assert_array_equal(tensor.photo.picture, image.photo.picture)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.full((20, 20), np.nan), "NaN"),
        (np.full((20, 20), 7.0), r"\[0, 1\]"),
        (np.zeros((20, 20), np.int32), "uint8"),
        (np.zeros((20, 20, 5), np.uint8), "an array"),
        (torch.full((3, 20, 20), torch.nan), "NaN"),
        (torch.zeros(20, 20), "a tensor"),
        (torch.zeros(3, 20, 20, dtype=torch.uint8), "a tensor"),
        (torch.zeros(3, 1, 1), "too small"),
    ],
)
def test_arrays_and_tensors_that_are_no_images_are_refused(source, message):
    with pytest.raises(rx.RepeatError, match=message):
        rx.load_image(source, ENCODER)


def bomb():
    """Return a PNG whose header announces 30,000 × 30,000 pixels."""

    def block(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + block(b"IDAT", zlib.compress(b"\0")) + block(b"IEND", b"")


def encoded(image, kind="PNG"):
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


BAD = {
    "empty": (b"", "empty"),
    "text": (b"hello, I am no picture", "not an image"),
    "truncated": (encoded(picture(), "JPEG")[:500], "damaged or cut short"),
    "truncated_png": (encoded(picture())[:100], "damaged or cut short"),
    "bomb": (bomb(), "million pixels"),
    "dot": (encoded(PIL.Image.new("RGB", (1, 1))), "too small"),
    "line": (encoded(PIL.Image.new("RGB", (500, 2))), "too small"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_error_names_the_bad_file(tmp_path, name):
    content, message = BAD[name]
    (tmp_path / f"{name}.png").write_bytes(content)
    with pytest.raises(rx.RepeatError, match=rf"{name}\.png: .*{message}"):
        rx.load_image(tmp_path / f"{name}.png", ENCODER)


def test_the_error_names_the_missing_file_or_the_folder(tmp_path):
    with pytest.raises(rx.RepeatError, match="no such file"):
        rx.load_image(tmp_path / "nothing.png", ENCODER)
    with pytest.raises(rx.RepeatError, match="a folder with no JPEG"):
        rx.load_image(tmp_path, ENCODER)


def test_the_box_is_the_part_that_the_encoder_sees():
    wide = PIL.Image.new("RGB", (200, 100))
    assert rx.load_image(wide, UncalledEncoder(resize=32)).photo.box == (50, 0, 150, 100)
    assert rx.load_image(wide, UncalledEncoder(resize=64)).photo.box == (75, 25, 125, 75)
    assert rx.load_image(wide, UncalledEncoder()).photo.box == (0, 0, 200, 100)


def test_a_map_is_resized_to_the_photo():
    """Bilinear enlargement keeps a linear ramp exactly, away from the edges."""
    photo = rx.load_image(PIL.Image.new("RGB", (200, 100)), UncalledEncoder(resize=32)).photo
    columns = (torch.arange(32) + 0.5).expand(32, 32)
    resized = rx.map_to_photo(columns, photo)
    assert resized.shape == (100, 200)
    assert resized[:, :50].isnan().all()
    assert resized[:, 150:].isnan().all()
    expected = (torch.arange(200) + 0.5 - 50) / 100 * 32
    torch.testing.assert_close(resized[50, 55:145], expected[55:145])


def test_a_map_is_resized_to_a_tall_photo():
    photo = rx.load_image(PIL.Image.new("RGB", (100, 200)), UncalledEncoder(resize=32)).photo
    resized = rx.map_to_photo((torch.arange(32) + 0.5)[:, None].expand(32, 32), photo)
    assert resized[:50].isnan().all()
    assert resized[150:].isnan().all()
    expected = (torch.arange(200) + 0.5 - 50) / 100 * 32
    torch.testing.assert_close(resized[55:145, 30], expected[55:145])


def test_a_fifo_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(rx.RepeatError, match="not a file"):
        rx.load_image(tmp_path / "pipe.png", ENCODER)


def test_a_long_and_thin_photo_is_refused():
    with pytest.raises(rx.RepeatError, match="too long and thin"):
        rx.load_image(PIL.Image.new("L", (8, 400_000)), UncalledEncoder(resize=224))


def test_a_large_photo_has_a_smaller_picture_but_keeps_its_size():
    photo = rx.load_image(PIL.Image.new("RGB", (3000, 1500)), ENCODER).photo
    assert photo.size == (1500, 3000)
    assert photo.picture.shape == (512, 1024, 3)


def test_the_digest_depends_on_the_content_and_not_on_the_name(tmp_path):
    for name in ("a.png", "b.png"):
        picture().save(tmp_path / name)
    first, second = (rx.load_image(tmp_path / name, ENCODER).photo.digest for name in ("a.png", "b.png"))
    assert first == second


def test_an_image_of_any_source_has_the_name_that_is_given():
    sources = [picture(), torch.zeros(3, 32, 32)]
    assert [rx.load_image(source, ENCODER, name="mine").photo.name for source in sources] == ["mine", "mine"]
    with pytest.raises(rx.RepeatError, match="mine"):
        rx.load_image(torch.zeros(3, 4, 4), ENCODER, name="mine")
