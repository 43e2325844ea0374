"""The conversion of any value that a tool returns to text that can be stored and shown (MSG-10, MSG-12)."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, time, timedelta
from enum import Enum
from typing import Any

from pydantic import BaseModel

LIMIT = 200_000
MAX_DEPTH = 60
CIRCULAR = "[circular]"
TOO_DEEP = "[too deep]"
CUT = "[cut]"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Replace characters that databases or UTF-8 cannot store (NUL, lone surrogates) by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def cut(text: str, limit: int = LIMIT) -> str:
    """Return the first `limit` characters, with a note if the text was longer."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut after {limit:,} characters]"


def safe_text(value: object, limit: int = LIMIT) -> str:
    """Return any value as text of at most `limit` characters. Never raises.

    Bytes are decoded, and values other than text become JSON. If the text is cut, a note is added.
    """
    try:
        return clean(cut(_text(value, limit), limit))
    except Exception:  # the methods of foreign objects may raise anything
        return f"[{type(value).__name__}: cannot be shown]"


def _text(value: object, limit: int) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_text(bytes(value))
    plain = _Plain(limit).of(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _bytes_text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\x00"
    return f"[{len(data):,} bytes of binary data]" if "\x00" in text else text


class _Plain:
    """A converter of values to plain JSON values of about `budget` characters at most."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.open: set[int] = set()

    def of(self, value: object) -> Any:
        self.budget -= 4
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self.of(value.value)
        if isinstance(value, int | float):
            return _number(value)
        inside = _inside(value)
        return self._leaf(value) if inside is None else self._container(value, inside)

    def _leaf(self, value: object) -> str:
        text = clean(_leaf_text(value)[: max(self.budget, 0)])
        self.budget -= len(text)
        return text

    def _container(self, value: object, inside: Mapping[Any, Any] | Iterable[Any]) -> Any:
        if id(value) in self.open:
            return CIRCULAR
        if len(self.open) >= MAX_DEPTH:
            return TOO_DEEP
        self.open.add(id(value))
        try:
            return self._object(inside) if isinstance(inside, Mapping) else self._array(inside)
        finally:
            self.open.discard(id(value))

    def _object(self, items: Mapping[Any, Any]) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, item in items.items():
            if self.budget <= 0:
                plain[CUT] = True
                break
            name = self._leaf(key)  # before the value, which may use up the budget
            plain[name] = self.of(item)
        return plain

    def _array(self, items: Iterable[Any]) -> list[Any]:
        plain: list[Any] = []
        for item in items:
            if self.budget <= 0:
                plain.append(CUT)
                break
            plain.append(self.of(item))
        return plain


def _inside(value: object) -> Mapping[Any, Any] | Iterable[Any] | None:
    """Return the content of a container, or None for a leaf. An iterator is a leaf, because it may never end."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, str | bytes | bytearray | memoryview | range):
        return None
    return value if isinstance(value, Mapping | Sequence | Set) else None


def _number(value: float) -> float | str:
    if isinstance(value, int):
        return int(value) if value.bit_length() < 10_000 else f"[an integer of {value.bit_length():,} bits]"
    return float(value) if math.isfinite(value) else str(float(value))


def _leaf_text(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_text(bytes(value))
    if isinstance(value, date | time):  # datetime is a date
        return value.isoformat()
    try:
        return repr(value) if isinstance(value, type | timedelta) else str(value)
    except Exception:  # the object's own __str__
        return f"[{type(value).__name__}: cannot be shown]"
