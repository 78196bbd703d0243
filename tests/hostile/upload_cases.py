"""Photos sent to the app under odd names, with odd headers, and photos that are none."""

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
    """A photo in one of Pillow's formats."""
    file = io.BytesIO()
    PIL.Image.fromarray(data.chelsea()).resize(size).convert(mode).save(file, kind)
    return file.getvalue()


def announcing(width: int, height: int) -> bytes:
    """A PNG that says it is this large, with next to nothing in it."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


PHOTO = encoded()


@dataclass(frozen=True)
class Upload:
    """A request that uploads something, and how it, or its photo when it is handed over, should be answered."""

    name: str
    content: bytes = PHOTO
    query: str = "name=cat.png"
    headers: Mapping[str, str] = field(default_factory=dict)
    expected: Literal["right", "refused"] = "refused"
    says: str = ""

    def __str__(self) -> str:
        return self.name


def named(name: str, shown: str) -> Upload:
    return Upload(f"named {name[:20]!r}", query=f"name={quote(name, safe='')}", expected="right", says=shown)


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
    Upload("no name", query="", expected="right", says="photo"),
    Upload("two names", query="name=a.png&name=b.png", expected="right", says="b.png"),
    Upload("a broken name", query="name=%ff%fe.png", expected="right", says="png"),
    Upload("a GIF", encoded("GIF", mode="P"), expected="right", says="cat.png"),
    Upload("a TIFF of CMYK", encoded("TIFF", mode="CMYK"), expected="right", says="cat.png"),
    Upload("nothing", b"", says="empty"),
    Upload("text", b"no photo at all\n" * 9, says="not an image"),
    Upload("HTML", b"<!doctype html><script>alert(1)</script>", says="not an image"),
    Upload("SVG", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", says="not an image"),
    Upload("PostScript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", says="not an image"),
    Upload("cut short", encoded("JPEG")[:300], says="damaged|cut short|not an image"),
    Upload("a bomb", announcing(60_000, 60_000), says="accepted here|million pixels"),
    Upload("too many pixels", announcing(9_000, 5_000), says="40 million accepted here"),
    Upload("too small", encoded(size=(4, 4)), says="too small"),
    Upload("too thin", encoded(size=(9, 40_000)), says="too long and thin|accepted here"),
    Upload("a pickle", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94", says="not an image"),
    Upload("as a form", headers={"Content-Type": "multipart/form-data; boundary=a"}, says="content type"),
    Upload("as text", headers={"Content-Type": "text/plain"}, says="content type"),
    Upload("without a type", headers={"Content-Type": ""}, says="content type"),
    Upload("of another site", headers={"Origin": "http://evil.example"}, says="another site"),
    Upload("of a sandbox", headers={"Origin": "null"}, says="another site"),
    Upload("a long query", query="name=" + "x" * 30_000, expected="right", says="x{50,}"),
]
