"""Answers in typical Markdown of models, in which each token can be recognized in any frame."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 4
WORD = re.compile(rb"[A-Z]{%d}" % WIDTH)


def _parts(*parts: tuple[str, int, str]) -> list[str]:
    """Return the prefixes of tokens. A part is (prefix of its first token, number of tokens, prefix of the others)."""
    return [prefix for first, count, other in parts for prefix in (first, *[other] * (count - 1))]


# The text before each token, repeated without end: about 260 tokens of prose, a list, code, a table and a heading.
PREFIXES = _parts(
    ("\n\n## ", 5, " "),
    ("\n\n", 70, " "),
    ("\n\n- ", 12, " "),
    ("\n- **", 1, " "),
    ("** ", 14, " "),
    ("\n- ", 10, " "),
    ("\n\n```python\ndef ", 1, ""),
    ("(", 3, ", "),
    ("):\n    # ", 8, " "),
    ("\n    ", 1, ""),
    (" = ", 1, ""),
    (".", 1, ""),
    ("(", 3, ", "),
    (')\n    raise ValueError("', 6, " "),
    ('")\n    return ', 1, ""),
    ("[", 3, ", "),
    ("]\n```\n\n", 40, " "),
    (" `", 1, " "),
    ("` ", 30, " "),
    ("\n\n| ", 3, " | "),
    (" |\n|---|---|---|\n| ", 3, " | "),
    *[(" |\n| ", 3, " | ")] * 4,
    (" |\n\n", 20, " "),
)


def word(number: int) -> str:
    """Return the four capital letters that name a token. Parley's own HTML has no such words."""
    letters = []
    for _ in range(WIDTH):
        number, letter = divmod(number, 26)
        letters.append(chr(65 + letter))
    return "".join(reversed(letters))


def number_of(name: bytes) -> int:
    """Return the number of the token that a word names."""
    number = 0
    for letter in name:
        number = number * 26 + letter - 65
    return number


def tokens(size: int = 0) -> Iterator[str]:
    """Yield tokens without end. Each ends with its word, and is filled up to `size` characters."""
    number = 0
    while True:
        for prefix in PREFIXES:
            filler = ("of the " * (size // 7 + 1))[: max(0, size - len(prefix) - WIDTH - 1)]
            yield f"{prefix}{filler} {word(number)}" if filler else prefix + word(number)
            number += 1


def last_word(frame: bytes) -> int:
    """Return the number of the last token in a frame, or -1 if there is none."""
    found = WORD.findall(frame)
    return number_of(found[-1]) if found else -1
