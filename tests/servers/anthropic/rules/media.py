"""Images: of a kind the API takes, what they say they are, and not too large among many."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import inside

MANY_IMAGES = 20
MAX_PIXELS_AMONG_MANY = 2000

SIGNATURES: Mapping[bytes, str] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def images_are_what_they_say(ask: Ask) -> Iterator[Fault]:
    for where, image in base64_images(ask):
        path = f"{where}.image.source.base64"
        said = image.get("media_type")
        found = kind_of(head_of(image))
        if said is None:
            yield Fault("bad_image", f"{path}.media_type: Field required")
        elif said not in SIGNATURES.values():
            allowed = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
            yield Fault("bad_image", f"{path}.media_type: {allowed}")
        elif found and found != said:
            yield Fault(
                "bad_image",
                f"{path}: The image was specified using the {said} media type, "
                f"but the image appears to be a {found} image",
            )


def many_images_are_small(ask: Ask) -> Iterator[Fault]:
    images = list(base64_images(ask))
    count = len(images) if ask.context.image_count is None else ask.context.image_count
    for where, image in images:
        width, height = ask.context.image_px or size_of(head_of(image))
        if count > MANY_IMAGES and max(width, height) > MAX_PIXELS_AMONG_MANY:
            yield Fault(
                "image_too_big",
                f"{where}.image.source.base64.data: At least one of the image dimensions exceed "
                f"max allowed size for many-image requests: {MAX_PIXELS_AMONG_MANY} pixels",
            )


def base64_images(ask: Ask) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for spot in ask.spots:
        for where, block in [(spot.path, spot.block), *inside(spot)]:
            source = block.get("source")
            if (
                block.get("type") == "image"
                and isinstance(source, Mapping)
                and source.get("type") == "base64"
            ):
                yield where, source


def head_of(image: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(str(image.get("data", ""))[:64])
    except binascii.Error:
        return b""


def kind_of(head: bytes) -> str | None:
    return next((kind for signature, kind in SIGNATURES.items() if head.startswith(signature)), None)


def size_of(head: bytes) -> tuple[int, int]:
    """Read from PNG and GIF; (0, 0) where it is not known."""
    if kind_of(head) == "image/png" and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if kind_of(head) == "image/gif" and len(head) >= 10:
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    return 0, 0
