"""Find mentions of agents and people in a text: their name after an @ (RUN-17, LIVE-07). Pure.

Names in code and in web addresses are not mentions, and the page does not mark them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from chat.user_markup import plain_parts

# Every agent can be mentioned by this name, besides its own.
ANY_AGENT = "agent"
# An @ in an e-mail address and the beginning of a longer word are not mentions. Some languages have no spaces between
# words, and Korean particles follow a name directly: Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean.
NOT_INSIDE = r"(?<![A-Za-z0-9_.@])"
NOT_LONGER = r"(?![^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|-)"
_POSSIBLE = re.compile(NOT_INSIDE + r"@(?=[^\s@])")
# The most @ of a text that are checked for people. Each check can cost as much as there are names.
MAX_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of a user: `length` characters from `start` on, including the @."""

    user_id: int
    start: int
    length: int


def find_mentions(text: str, names: Mapping[str, str]) -> list[str]:
    """Return the agents that a text mentions, in the text's order. `names` maps the names after an @ to agents.

    Case does not matter.
    """
    known: dict[str, str] = {}
    for name, agent in names.items():
        known.setdefault(name.casefold(), agent)
    found = (name.casefold() for _start, name in _matches(text, names))
    return list(dict.fromkeys(known[name] for name in found if name in known))


def mentioned_agents(text: str, names: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Return the mentions of agents in a text, in order, as (agent, start, length) in characters, including the @."""
    known: dict[str, str] = {}
    for name, agent in names.items():
        known.setdefault(name.casefold(), agent)
    found = [(known.get(name.casefold()), start, name) for start, name in _matches(text, names, MAX_LOOKED_AT)]
    return [(agent, start, len(name) + 1) for agent, start, name in found if agent is not None]


def mentions(text: str, names: Iterable[str]) -> bool:
    """Return whether a text has one of the names, or "agent", after an @."""
    return bool(find_mentions(text, dict.fromkeys([ANY_AGENT, *names], ANY_AGENT)))


def mentioned_people(text: str, names: Iterable[tuple[str, int]]) -> list[Mention]:
    """Return the mentions of users in a text, in order. `names` are pairs of a name after an @ and the user's id.

    A name of several users mentions all of them.
    """
    known: dict[str, dict[int, None]] = {}
    for name, user_id in names:
        known.setdefault(name.casefold(), {})[user_id] = None
    return [
        Mention(user_id, start, len(found) + 1)
        for start, found in _matches(text, known, MAX_LOOKED_AT)
        for user_id in known.get(found.casefold(), ())
    ]


def _matches(text: str, names: Iterable[str], most: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield the position of each @ before a name, and the longest such name. Only the first `most` @ are checked."""
    anyone = "|".join(map(re.escape, sorted((name for name in names if name), key=len, reverse=True)))
    if not anyone or "@" not in text:
        return
    pattern = re.compile(f"@({anyone}){NOT_LONGER}", re.IGNORECASE)
    possible = (
        (start, part, at.start())
        for start, part in ((start, text[start:end]) for start, end in plain_parts(text))
        for at in _POSSIBLE.finditer(part)
    )
    for start, part, at in islice(possible, most):
        if match := pattern.match(part, at):
            yield start + at, match[1]
