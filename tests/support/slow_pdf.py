"""A reader of PDF files that never comes to an end, for tests."""

from collections.abc import Iterator


def read(data: bytes) -> Iterator[str]:
    yield "7"
    while True:
        pass
