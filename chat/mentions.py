"""Which agents a message mentions: it names them after an @ (RUN-17)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# Every agent has this name, beside its own.
ANY_AGENT = "agent"


def mentioned(text: str, names: Mapping[str, str]) -> list[str]:
    """Return the agents that a text mentions, in its order. `names` are what can follow an @, and the agents so called.

    The case of letters does not matter.
    """
    known: dict[str, str] = {}
    for name, agent in names.items():
        known.setdefault(name.casefold(), agent)
    anyone = "|".join(map(re.escape, sorted((name for name in names if name), key=len, reverse=True)))
    # An e-mail address names no one, and @agents is another name than @agent.
    found = re.findall(rf"(?<![A-Za-z0-9_.@])@({anyone})(?![A-Za-z0-9_-])", text, re.IGNORECASE) if anyone else []
    return list(dict.fromkeys(known[name.casefold()] for name in found if name.casefold() in known))


def mentions(text: str, names: Iterable[str]) -> bool:
    """Return whether a text has one of the names, or "agent", after an @."""
    return bool(mentioned(text, dict.fromkeys([ANY_AGENT, *names], ANY_AGENT)))
