"""A conversation of several agents as one of them gets it: its own answers, and what the others said (CTX-06)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from chat.models import ChatMessage, MessageRole, MessageType
from chat.projections.context import speaker

YOU_ARE = (
    "You are {title} (@{name}), one of several agents in this conversation. Messages that begin with the name of "
    "another agent in square brackets are what that agent said. Answer as {title} only, without your name in front, "
    "and do not speak for the others. To ask another agent, tell the user to mention it."
)


def seen_by(
    rows: Sequence[ChatMessage], agent: str, own: tuple[str, str], titles: Mapping[str, str]
) -> Sequence[ChatMessage]:
    """Return the rows as an agent gets them. Texts of other agents are those of another sender; the rest is left out.

    `own` are the name and title of the session's own agent, `titles` those of the others. Without others the rows are
    unchanged: a session can have changed its own agent.
    """
    if not titles:
        return rows
    found = []
    for row in rows:
        name = row.agent_id if row.agent_id in titles else own[0]
        if not _is_said_by_an_agent(row) or name == (agent if agent in titles else own[0]):
            found.append(row)
        elif row.type == MessageType.TEXT:
            found.append(_as_another(row, titles.get(name) or own[1] or name))
    return found


def introduced(prompt: str, agent: str, own: tuple[str, str], titles: Mapping[str, str]) -> str:
    """Add to an agent's system prompt who it is among several."""
    if not titles:
        return prompt
    title = titles.get(agent) or own[1] or agent
    return "\n\n".join(part for part in (prompt, YOU_ARE.format(title=title, name=agent)) if part)


def _is_said_by_an_agent(row: ChatMessage) -> bool:
    types = (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)
    return row.type in types and speaker(row) == MessageRole.ASSISTANT


def _as_another(row: ChatMessage, title: str) -> ChatMessage:
    said = copy.copy(row)
    said.role, said.sender, said.user_id, said.response_id = MessageRole.USER, title, None, ""
    said.status = "complete"
    return said
