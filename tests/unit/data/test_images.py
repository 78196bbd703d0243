"""Every ordinary file becomes what a person would see, and every bad one a clear refusal."""

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


class Looker:
    """An encoder that is never asked: 32×32 inputs, pixels shown as they are."""

    name, weights, pool = "looker", "none", "none"
    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, channels=3, resize=(32, 32)):
        zero, one = (0.0,) * channels, (1.0,) * channels
        self.preprocessing = Preprocessing(size=(32, 32), resize=resize, mean=zero, std=one)

    def __call__(self, images):
        raise AssertionError


ramp = np.linspace(0, 1, 32)[None].repeat(32, 0)
RED = np.dstack([ramp, ramp.T, 0 * ramp])
LOOKER = Looker()


def picture():
    return PIL.Image.fromarray((RED * 255).round().astype(np.uint8))


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "webp", "jpg"])
def test_ordinary_files(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    picture().save(path, **({"lossless": True} if suffix == "webp" else {"quality": 95} if suffix == "jpg" else {}))
    found = rx.load_image(path, LOOKER).pixels
    atol = 0.06 if suffix == "jpg" else 0.003
    torch.testing.assert_close(found, torch.from_numpy(RED).permute(2, 0, 1).float(), atol=atol, rtol=0)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "CMYK", "1", "YCbCr", "PA"])
def test_every_mode_looks_as_pillow_shows_it(tmp_path, mode):
    kind = {"CMYK": "tiff", "PA": "tiff", "YCbCr": "jpg"}.get(mode, "png")
    path = tmp_path / f"a.{kind}"
    source = picture().convert(mode) if mode != "PA" else picture().convert("P")
    source.save(path)
    expected = np.asarray(PIL.Image.open(path).convert("RGB")) / 255
    torch.testing.assert_close(
        rx.load_image(path, LOOKER).pixels, torch.from_numpy(expected).permute(2, 0, 1).float(), atol=1e-6, rtol=0
    )


def test_transparency_is_seen_on_white(tmp_path):
    clear = picture().convert("RGBA")
    clear.putalpha(PIL.Image.fromarray((ramp * 255).astype(np.uint8)))
    clear.save(tmp_path / "a.png")
    alpha = np.floor(ramp * 255)[..., None] / 255
    expected = torch.from_numpy(RED * alpha + (1 - alpha)).permute(2, 0, 1).float()
    torch.testing.assert_close(rx.load_image(tmp_path / "a.png", LOOKER).pixels, expected, atol=0.01, rtol=0)


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_sixteen_bits_keep_their_depth(tmp_path, suffix):
    deep = (20_000 + ramp * 200).round().astype(np.uint16)
    PIL.Image.fromarray(deep).save(tmp_path / f"a.{suffix}")
    found = rx.load_image(tmp_path / f"a.{suffix}", LOOKER).pixels
    torch.testing.assert_close(found[1], torch.from_numpy(deep / 65535.0).float(), atol=1e-7, rtol=0)
    assert len(found[0].unique()) > 20


def test_float_tiff(tmp_path):
    PIL.Image.fromarray(ramp.astype(np.float32)).save(tmp_path / "a.tiff")
    found = rx.load_image(tmp_path / "a.tiff", LOOKER).pixels
    torch.testing.assert_close(found[2], torch.from_numpy(ramp).float())


@pytest.mark.parametrize(("value", "message"), [(np.nan, "NaN"), (3.0, "rescale")])
def test_float_tiff_out_of_range(tmp_path, value, message):
    PIL.Image.fromarray(np.where(ramp > 0.9, value, ramp).astype(np.float32)).save(tmp_path / "a.tiff")
    with pytest.raises(rx.RepeatError, match=rf"a\.tiff: .*{message}"):
        rx.load_image(tmp_path / "a.tiff", LOOKER)


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
    torch.testing.assert_close(rx.load_image(tmp_path / "a.png", LOOKER).pixels, expected, atol=0.003, rtol=0)


def test_a_grey_encoder_gets_one_channel(tmp_path):
    picture().save(tmp_path / "a.png")
    found = rx.load_image(tmp_path / "a.png", Looker(channels=1)).pixels
    expected = torch.from_numpy(np.asarray(picture().convert("L")) / 255.0).float()
    torch.testing.assert_close(found, expected[None])


def test_arrays_tensors_and_pictures_are_images_too():
    bytes_ = np.asarray(picture())
    one = rx.load_image(picture(), LOOKER)
    for source in (bytes_, bytes_ / 255.0):
        assert torch.equal(rx.load_image(source, LOOKER).pixels, one.pixels)
    tensor = rx.load_image(one.pixels, LOOKER)
    assert torch.equal(tensor.pixels, one.pixels)
    np.testing.assert_array_equal(tensor.photo.picture, one.photo.picture)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.full((20, 20), np.nan), "NaN"),
        (np.full((20, 20), 7.0), r"\[0, 1\]"),
        (np.zeros((20, 20), np.int32), "uint8"),
        (np.zeros((20, 20, 5), np.uint8), "an array must be"),
        (torch.full((3, 20, 20), torch.nan), "NaN"),
        (torch.zeros(20, 20), "a tensor must be"),
        (torch.zeros(3, 20, 20, dtype=torch.uint8), "a tensor must be"),
        (torch.zeros(3, 1, 1), "too small"),
    ],
)
def test_arrays_and_tensors_that_are_no_images(source, message):
    with pytest.raises(rx.RepeatError, match=message):
        rx.load_image(source, LOOKER)


def bomb():
    """A PNG that claims 30,000 × 30,000 pixels."""

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
def test_bad_files_are_named(tmp_path, name):
    content, message = BAD[name]
    (tmp_path / f"{name}.png").write_bytes(content)
    with pytest.raises(rx.RepeatError, match=rf"{name}\.png: .*{message}"):
        rx.load_image(tmp_path / f"{name}.png", LOOKER)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(rx.RepeatError, match="no such file"):
        rx.load_image(tmp_path / "nothing.png", LOOKER)
    with pytest.raises(rx.RepeatError, match="a folder with no JPEG"):
        rx.load_image(tmp_path, LOOKER)


def test_the_box_says_what_the_encoder_sees():
    wide = PIL.Image.new("RGB", (200, 100))
    assert rx.load_image(wide, Looker(resize=32)).photo.box == (50, 0, 150, 100)
    assert rx.load_image(wide, Looker(resize=64)).photo.box == (75, 25, 125, 75)
    assert rx.load_image(wide, Looker()).photo.box == (0, 0, 200, 100)


def test_a_map_comes_back_to_the_photo():
    """A linear ramp survives bilinear enlargement exactly, away from the rim."""
    photo = rx.load_image(PIL.Image.new("RGB", (200, 100)), Looker(resize=32)).photo
    columns = (torch.arange(32) + 0.5).expand(32, 32)
    back = rx.map_to_photo(columns, photo)
    assert back.shape == (100, 200)
    assert back[:, :50].isnan().all()
    assert back[:, 150:].isnan().all()
    expected = (torch.arange(200) + 0.5 - 50) / 100 * 32
    torch.testing.assert_close(back[50, 55:145], expected[55:145])


def test_a_map_comes_back_to_a_tall_photo():
    photo = rx.load_image(PIL.Image.new("RGB", (100, 200)), Looker(resize=32)).photo
    back = rx.map_to_photo((torch.arange(32) + 0.5)[:, None].expand(32, 32), photo)
    assert back[:50].isnan().all()
    assert back[150:].isnan().all()
    expected = (torch.arange(200) + 0.5 - 50) / 100 * 32
    torch.testing.assert_close(back[55:145, 30], expected[55:145])


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(rx.RepeatError, match="not a file"):
        rx.load_image(tmp_path / "pipe.png", LOOKER)


def test_too_long_and_thin():
    with pytest.raises(rx.RepeatError, match="too long and thin"):
        rx.load_image(PIL.Image.new("L", (8, 400_000)), Looker(resize=224))


def test_a_large_photo_is_drawn_small_but_keeps_its_size():
    photo = rx.load_image(PIL.Image.new("RGB", (3000, 1500)), LOOKER).photo
    assert photo.size == (1500, 3000)
    assert photo.picture.shape == (512, 1024, 3)


def test_the_digest_is_the_content_and_not_the_name(tmp_path):
    for name in ("a.png", "b.png"):
        picture().save(tmp_path / name)
    first, second = (rx.load_image(tmp_path / name, LOOKER).photo.digest for name in ("a.png", "b.png"))
    assert first == second
