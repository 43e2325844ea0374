"""Whether a message is for the agent: it names the agent after an @ (RUN-17)."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Every agent has this name, beside its own.
ANY_AGENT = "agent"


def mentions(text: str, names: Iterable[str]) -> bool:
    """Return whether a text has one of the names, or "agent", after an @. The case of letters does not matter."""
    known = sorted({ANY_AGENT, *names} - {""}, key=len, reverse=True)
    anyone = "|".join(map(re.escape, known))
    # An e-mail address names no one, and @agents is another name than @agent.
    return re.search(rf"(?<![A-Za-z0-9_.@])@(?:{anyone})(?![A-Za-z0-9_-])", text, re.IGNORECASE) is not None
