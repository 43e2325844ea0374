"""A deterministic model: decides from a user's words and the round what to answer, whichever vendor asks."""

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
    """What a request comes down to."""

    text: str
    tool_result: str | None = None
    tools: frozenset[str] = frozenset()
    think: bool = False


class Tokens(Iterator[str]):
    """Tokens that are made as they are sent; `count` is how many have been."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = iter(tokens)
        self.count = 0

    def __next__(self) -> str:
        token = next(self._tokens)
        self.count += 1
        return token


@dataclass(frozen=True)
class Answer:
    """What the model says: thinking, text, a call; `rate` is tokens a second, None as fast as it goes."""

    tokens: Tokens
    thinking: str = ""
    call: tuple[str, dict[str, Any]] | None = None
    rate: float | None = None


def answer(asked: Asked) -> Answer:
    """Decide: after a tool its result, `calculate …` calls the tool, `stream N tokens at R/s` streams, else an echo."""
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
    """Tokens that tell when they left, in monotonic microseconds, the same clock for every process of a machine."""
    while True:
        yield f"{time.monotonic_ns() // 1000} "
