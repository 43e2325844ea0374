"""Sessions full of malicious texts in titles, names, messages, reasoning, tools, outputs and errors.

`PARLEY_DATA=… python -m tests.support.hostile` writes them to a database that already has its first user, and prints
the sessions' ids as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import django

from tests.rendering.vectors import VECTORS

if TYPE_CHECKING:
    from chat.models import User, Workspace

PER_SESSION = 12  # so that all rows are on the page at once


def rows(vector: str, number: int) -> list[dict[str, Any]]:
    """Return rows with one text in every field of a message that another user can fill."""
    text = vector.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    call = {"tool_call_id": f"c_{number}", "arguments": {text[:200]: text, "command": text}, "result": text}
    return [
        {"type": "text", "role": "user", "text": text, "sender": text[:80]},
        {"type": "text", "role": "assistant", "text": text, "model": text[:80]},
        {"type": "reasoning", "text": text} if number % 3 else {"type": "error", "text": text},
        {"type": "tool_group", "tool_name": "bash" if number % 2 else text[:60], **call},
    ]


def write(owner: User, workspace: Workspace, vectors: tuple[str, ...]) -> str:
    from chat.models import ChatMessage, Session, SessionRun
    from chat.services.sessions.lifecycle import create_session

    title = rows(vectors[0], 0)[0]["text"][:100]
    session = create_session(owner=owner, workspace=workspace, title=title)
    SessionRun.objects.filter(session=session).update(wanted=0)
    for vector in vectors:
        for row in rows(vector, VECTORS.index(vector)):
            session.revision += 1
            at = {"sequence": session.revision, "revision": session.revision}
            ChatMessage.objects.create(session=session, **at, **row)
    Session.objects.filter(pk=session.pk).update(revision=session.revision)
    return session.pk


def main() -> None:
    django.setup()
    from chat.models import User, Workspace

    owner, workspace = User.objects.get(), Workspace.objects.get()
    parts = [VECTORS[start : start + PER_SESSION] for start in range(0, len(VECTORS), PER_SESSION)]
    json.dump([write(owner, workspace, part) for part in parts], sys.stdout)


if __name__ == "__main__":
    main()
