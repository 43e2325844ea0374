"""A PDF reader that never finishes, for tests."""

from collections.abc import Iterator


def read(data: bytes, most_chars: int) -> Iterator[str]:
    yield "7"
    while True:
        pass
