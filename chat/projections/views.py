"""A conversation of several agents from the view of one of them: its own rows, and the texts of others (CTX-06)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from chat.models import ChatMessage, MessageRole, MessageType
from chat.projections.context import foreign_origin, speaker

YOU_ARE = (
    "You are {title} (@{name}), one of several agents in this conversation. Messages that begin with the name of "
    "another agent in square brackets are what that agent said. Answer as {title} only, without your name in front, "
    "and do not speak for the others. To ask another agent, tell the user to mention it."
)


def seen_by(
    rows: Sequence[ChatMessage], agent: str, own: tuple[str, str], titles: Mapping[str, str]
) -> Sequence[ChatMessage]:
    """Return the rows that an agent gets. Texts of other agents become user messages; their other rows are left out.

    Once an agent has read text from elsewhere, all texts of other agents count as that, too. Otherwise an agent
    could be made to write what another one takes for the user's words.

    `own` is the name and the title of the session's own agent. `titles` are the titles of the other agents by name. If
    there are none, return the rows unchanged, because older rows may name an agent that the session had before.
    """
    if not titles:
        return rows
    found = []
    origin = ""
    for row in rows:
        name = row.agent_id if row.agent_id in titles else own[0]
        origin = foreign_origin(row) or origin
        if not _is_from_agent(row) or name == (agent if agent in titles else own[0]):
            found.append(row)
        elif row.type == MessageType.TEXT:
            found.append(_as_another(row, titles.get(name) or own[1] or name, origin))
    return found


def with_introduction(prompt: str, agent: str, own: tuple[str, str], titles: Mapping[str, str]) -> str:
    """Return an agent's system prompt. If there are several agents, add which one it is."""
    if not titles:
        return prompt
    title = titles.get(agent) or own[1] or agent
    return "\n\n".join(part for part in (prompt, YOU_ARE.format(title=title, name=agent)) if part)


def _is_from_agent(row: ChatMessage) -> bool:
    types = (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)
    return row.type in types and speaker(row) == MessageRole.ASSISTANT


def _as_another(row: ChatMessage, title: str, origin: str) -> ChatMessage:
    said = copy.copy(row)
    said.origin = origin
    said.role, said.sender, said.user_id, said.response_id = MessageRole.USER, title, None, ""
    said.status = "complete"
    return said
