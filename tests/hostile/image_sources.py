"""Pictures in memory in every mode, paths that are no files, and files under unusual names."""

import io
import os
from pathlib import Path

import numpy as np
import PIL.Image
from hostile.damages import SPECIAL
from hostile.image_bytes import PICTURE, PIXELS, RAMP, SIDE, saved
from hostile.image_cases import DAMAGED, EITHER, NO_IMAGE, TOO_SMALL, Picture
from hostile.other_cases import BINARY


def in_memory(name: str, made, expected="right", **fields) -> Picture:
    return Picture(name=f"in memory: {name}", make=lambda folder: made(), expected=expected, **fields)


def unread() -> PIL.Image.Image:
    """Return a picture that Pillow has opened and not yet decoded, and whose file is damaged."""
    return PIL.Image.open(io.BytesIO(saved("JPEG")[:700]))


def closed() -> PIL.Image.Image:
    picture = PICTURE.copy()
    picture.close()
    return picture


def clear(mode: str) -> PIL.Image.Image:
    """Return a fully transparent picture."""
    return PIL.Image.new(mode, (SIDE, SIDE))


MEMORY = [
    *(in_memory(mode, lambda mode=mode: PICTURE.convert(mode)) for mode in ("RGB", "RGBA", "RGBX")),
    *(in_memory(mode, lambda mode=mode: PICTURE.convert(mode), within=6) for mode in ("YCbCr", "HSV", "CMYK")),
    *(
        in_memory(mode, lambda mode=mode: PICTURE.convert(mode), shows="anything")
        for mode in ("1", "L", "LA", "P", "PA", "I")
    ),
    in_memory("RGBa", lambda: PICTURE.convert("RGBA").convert("RGBa")),
    *(
        in_memory(f"clear {mode}", lambda mode=mode: clear(mode), shows="white")
        for mode in ("RGBA", "RGBa", "LA", "La")
    ),
    *(in_memory(mode, lambda mode=mode: clear(mode), shows="anything") for mode in ("I;16", "I;16B", "I;16L", "F")),
    in_memory("LAB", lambda: clear("LAB"), shows="anything"),
    in_memory("F from 0 to 255", lambda: PICTURE.convert("F"), "refused", message="rescale"),
    in_memory("of no size", lambda: PIL.Image.new("RGB", (0, 0)), "refused", message=TOO_SMALL),
    in_memory("closed", closed, "refused", message=DAMAGED),
    in_memory("not yet decoded and damaged", unread, "refused", message=DAMAGED),
    in_memory("a bad palette", lambda: PIL.Image.fromarray(RAMP).convert("P"), shows="anything"),
    in_memory("an array without rows", lambda: np.zeros((0, 32, 3), np.float32), "refused", message=TOO_SMALL),
    in_memory("an array of nothing", lambda: np.zeros((0, 0)), "refused", message=TOO_SMALL),
    in_memory("an array of records", lambda: np.zeros((32, 32), [("a", "f4")]), "refused", message="uint8 or floats"),
    in_memory("an array of objects", lambda: np.full((32, 32), None), "refused", message="uint8 or floats"),
    in_memory("an array of five axes", lambda: np.zeros((1, 1, 32, 32, 3)), "refused", message="an array must be"),
    in_memory("an array seen from behind", lambda: PIXELS[::-1][::-1]),
]


def place(name: str, make, message: str, expected="refused") -> Picture:
    return Picture(name=f"place: {name}", make=make, expected=expected, message=message)


def special(make, file_name: str = "a.png"):
    def made(folder: Path) -> Path:
        make(folder / file_name)
        return folder / file_name

    return made


def linked(target: str, content: bytes | None = None):
    """Return a function that creates a link to a file elsewhere."""

    def made(folder: Path) -> Path:
        if content is not None:
            (folder / target).write_bytes(content)
        (folder / "a.png").symlink_to(target)
        return folder / "a.png"

    return made


def two_links(folder: Path) -> Path:
    """Create two links that point to each other."""
    (folder / "a.png").symlink_to("b.png")
    (folder / "b.png").symlink_to("a.png")
    return folder / "a.png"


def named(name: bytes, content: bytes = BINARY):
    def made(folder: Path) -> str:
        path = folder / os.fsdecode(name)
        path.write_bytes(content)
        return str(path)

    return made


def sparse(size: int, head: bytes = b""):
    """Return a function that creates a file of this many bytes that takes no space on the disk."""

    def made(folder: Path) -> Path:
        with (folder / "a.jpg").open("wb") as file:
            file.write(head)
            file.truncate(size)
        return folder / "a.jpg"

    return made


NAMES = {
    "a newline": b"a\nb.png",
    "a return": b"a\rb.png",
    "an escape": b"\x1b[31mred.png",
    "a byte that is no letter": b"a\xff.png",
    "a dash in front": b"-rf.png",
    "a formula": b"=1+1.png",
    "255 letters": b"x" * 251 + b".png",
    "spaces": b"  .png",
    "line separators": "a\u2028b\u2029.png".encode(),
}
PLACES = [
    *(
        place(name, special(make), "a folder with no JPEG" if name == "a folder" else "not a file")
        for name, make in SPECIAL.items()
    ),
    place("two links that lead to each other", two_links, "not a file"),
    place("a file that cannot be read", linked("/proc/self/mem"), "cannot be read|is empty"),
    place("a name with a null byte", lambda folder: folder / "a\0.png", "not a file"),
    place("a name of 5,000 letters", lambda folder: folder / ("x" * 5000), "cannot be read|not a file|no such file"),
    place("a name that is empty", lambda folder: "", "a folder with no JPEG"),
    place(
        "a folder that is a file", lambda folder: special(Path.touch)(folder) / "b.png", "cannot be read|no such file"
    ),
    place("nothing", lambda folder: folder / "nothing.png", "no such file"),
    place("a sparse file of 2 GB", sparse(2**31), "more than the 512 MB"),
    place("a sparse file of 6 GB", sparse(6 * 2**30), "more than the 512 MB"),
    place("a sparse file of 100 MB", sparse(10**8), NO_IMAGE),
    place("a sparse file of 10 MB with the beginning of a JPEG", sparse(10**7, b"\xff\xd8\xff\xe0"), EITHER),
    place("a link to a photo", linked("b.png", BINARY), "", "right"),
    *(place(f"a photo whose name has {name}", named(text), "", "right") for name, text in NAMES.items()),
    *(place(f"no photo, whose name has {name}", named(text, b"none"), NO_IMAGE) for name, text in NAMES.items()),
]
