"""The child process that reads images for `chat.files.image_processes`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from chat.files import images
from chat.files.contents import Unusable


def read(data: bytes) -> Iterator[bytes]:
    """Yield an image's properties as JSON, its bytes and its smaller forms.

    If it is unusable, yield only its problem.
    """
    try:
        found = images.read(data)
    except Unusable as error:
        yield json.dumps({"problem": error.problem}).encode()
        return
    yield json.dumps({"media_type": found.media_type, "width": found.width, "height": found.height}).encode()
    yield from (found.data, found.thumb, found.model_image)


def square(data: bytes, side: int) -> Iterator[bytes]:
    """Yield an empty piece and an image as a square. If it is unusable, yield only its problem."""
    try:
        drawn = images.square(data, side)
    except Unusable as error:
        yield error.problem.encode()
        return
    yield from (b"", drawn)
