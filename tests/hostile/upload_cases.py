"""Uploads to the app under unusual names, with unusual headers, and of files that are no photos."""

import io
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

import PIL.Image
from skimage import data


def encoded(kind: str = "PNG", *, size: tuple[int, int] = (60, 40), mode: str = "RGB") -> bytes:
    """Return a photo in one of Pillow's formats."""
    file = io.BytesIO()
    PIL.Image.fromarray(data.chelsea()).resize(size).convert(mode).save(file, kind)
    return file.getvalue()


def announcing(width: int, height: int) -> bytes:
    """Return a PNG whose header states this size and which has hardly any content."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


PHOTO = encoded()


@dataclass(frozen=True)
class Upload:
    """A request that uploads something, and the answer that it, or the selection of its photo, should get."""

    name: str
    content: bytes = PHOTO
    query: str = "name=cat.png"
    headers: Mapping[str, str] = field(default_factory=dict)
    expected: Literal["right", "refused"] = "refused"
    message: str = ""

    def __str__(self) -> str:
        return self.name


def named(name: str, shown: str) -> Upload:
    return Upload(f"named {name[:20]!r}", query=f"name={quote(name, safe='')}", expected="right", message=shown)


UPLOADS = [
    named("../../../etc/passwd", "passwd"),
    named("/etc/passwd", "passwd"),
    named("C:\\Windows\\cat.png", "cat.png"),
    named("..", "photo"),
    named("", "photo"),
    named(".", "photo"),
    named("a\0b.png", "a b.png"),
    named("a\r\nSet-Cookie: x=y.png", "a  Set-Cookie: x=y.png"),
    named("<img src=x onerror=alert(1)>.png", "&lt;img src=x onerror=alert\\(1\\)&gt;.png"),
    named('"><script>.png', "&#34;&gt;&lt;script&gt;.png"),
    named("x" * 3000 + ".png", "x{100,}.png"),
    named("猫🐈.png", "猫🐈.png"),
    named("\u202egnp.cat", "gnp.cat"),
    named("=1+1.png", "=1\\+1.png"),
    named("-rf", "-rf"),
    named(".htaccess", "htaccess"),
    named("%2e%2e%2fcat.png", "%2e%2e%2fcat.png"),
    named("cat.png.", "cat.png"),
    named("{cat}.png", "{cat}.png"),
    Upload("no name", query="", expected="right", message="photo"),
    Upload("two names", query="name=a.png&name=b.png", expected="right", message="b.png"),
    Upload("a broken name", query="name=%ff%fe.png", expected="right", message="png"),
    Upload("a GIF", encoded("GIF", mode="P"), expected="right", message="cat.png"),
    Upload("a TIFF of CMYK", encoded("TIFF", mode="CMYK"), expected="right", message="cat.png"),
    Upload("nothing", b"", message="empty"),
    Upload("text", b"no photo at all\n" * 9, message="not an image"),
    Upload("HTML", b"<!doctype html><script>alert(1)</script>", message="not an image"),
    Upload("SVG", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", message="not an image"),
    Upload("PostScript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", message="not an image"),
    Upload("cut short", encoded("JPEG")[:300], message="damaged|cut short|not an image"),
    Upload("a bomb", announcing(60_000, 60_000), message="accepted here|million pixels"),
    Upload("too many pixels", announcing(9_000, 5_000), message="40 million accepted here"),
    Upload("too small", encoded(size=(4, 4)), message="too small"),
    Upload("too thin", encoded(size=(9, 40_000)), message="too long and thin|accepted here"),
    Upload("a pickle", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94", message="not an image"),
    Upload("as a form", headers={"Content-Type": "multipart/form-data; boundary=a"}, message="content type"),
    Upload("as text", headers={"Content-Type": "text/plain"}, message="content type"),
    Upload("without a type", headers={"Content-Type": ""}, message="content type"),
    Upload("of another site", headers={"Origin": "http://evil.example"}, message="another site"),
    Upload("of a sandbox", headers={"Origin": "null"}, message="another site"),
    Upload("a long query", query="name=" + "x" * 30_000, expected="right", message="x{50,}"),
]
