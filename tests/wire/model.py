"""A deterministic model, whose answer depends on the user's text and the round, for all vendors."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

STREAM = re.compile(r"(?i)\bstream (?P<count>\d+) tokens?(?: at (?P<rate>[\d.]+)/s)?(?P<stamped> stamped)?")
CALCULATE = re.compile(r"(?is)\bcalculate\b:?\s*(?P<expression>[^\n]*)")
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "omicron")


@dataclass(frozen=True)
class Asked:
    """The parts of a request that determine the answer."""

    text: str
    tool_result: str | None = None
    tools: frozenset[str] = frozenset()
    think: bool = False


class Tokens(Iterator[str]):
    """Tokens that are generated as they are sent; `count` is the number so far."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = iter(tokens)
        self.count = 0

    def __next__(self) -> str:
        token = next(self._tokens)
        self.count += 1
        return token


@dataclass(frozen=True)
class Answer:
    """The answer of the model: thinking, text and a call; `rate` is tokens per second, or None for no pacing."""

    tokens: Tokens
    thinking: str = ""
    call: tuple[str, dict[str, Any]] | None = None
    rate: float | None = None


def answer(asked: Asked) -> Answer:
    """Return the answer: a tool's result, a call for `calculate …`, a stream for `stream N tokens at R/s`, or an
    echo."""
    thinking = f"The user says: {asked.text[:80]}" if asked.think else ""
    if asked.tool_result is not None:
        return Answer(_words(f"The result is {asked.tool_result}."), thinking)
    if (sum_ := CALCULATE.search(asked.text)) and "calculator" in asked.tools:
        call = ("calculator", {"expression": sum_["expression"].strip() or "1 + 1"})
        return Answer(_words("Let me calculate that."), thinking, call)
    if stream := STREAM.search(asked.text):
        tokens = _stamps() if stream["stamped"] else (f"{word} " for word in itertools.cycle(WORDS))
        rate = float(stream["rate"]) if stream["rate"] else None
        return Answer(Tokens(itertools.islice(tokens, int(stream["count"]))), thinking, rate=rate)
    return Answer(_words(f"You said: {asked.text}"), thinking)


def _words(text: str) -> Tokens:
    return Tokens(re.findall(r"\S+\s*|\s+", text))


def _stamps() -> Iterator[str]:
    """Yield tokens with their time of sending in monotonic microseconds, on the clock that all processes of a machine
    share."""
    while True:
        yield f"{time.monotonic_ns() // 1000} "
