"""Sessions in which an agent works for another one: the agents that can be asked, and how deep the sessions are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from django.db.models import Exists, F, OuterRef, QuerySet

from agents.delegates import MAX_LEVELS, chosen_agents, delegate, tool_name
from agents.loop import Agent
from agents.registry import AgentPreset
from chat.models import ChatMessage, MessageStatus, QuestionKind, RunState, Session, SessionRun
from chat.queries import presets
from chat.runs.approvals import standing_of
from chat.subsession_snapshot import Wait


def with_delegates(agent: Agent, session: Session, preset: AgentPreset) -> Agent:
    """Add the tools for other agents that the agent's list names. At the last level, an agent gets none."""
    if level(session) >= MAX_LEVELS:
        return agent
    known = {tool.name for tool in agent.tools}
    tools = [delegate(each.name, each.title) for each in _named_agents(preset)]
    return replace(agent, tools=(*agent.tools, *(tool for tool in tools if tool.name not in known)))


def preset_for(call: ChatMessage, preset: AgentPreset) -> AgentPreset | None:
    """Return the agent that a call asks, or None if the calling agent may not ask it."""
    return next((each for each in _named_agents(preset) if tool_name(each.name) == call.tool_name), None)


def _named_agents(preset: AgentPreset) -> list[AgentPreset]:
    offered = {each.name: each for each in presets.presets()}
    return [offered[name] for name in chosen_agents(preset.tools, offered, preset.name)]


def level(session: Session) -> int:
    """Return how many callers are above a session. For sessions of users it is 0, without a query."""
    count, above = 0, session.caller_session_id
    while above and count < MAX_LEVELS:
        count += 1
        above = Session.objects.filter(pk=above).values_list("caller_session", flat=True).first()
    return count


def below(session_id: str) -> list[str]:
    """Return the ids of the sessions that agents began for this one, and of those below them."""
    found: list[str] = []
    above = [session_id]
    while above:
        above = list(Session.objects.filter(caller_session__in=above).values_list("pk", flat=True))
        found += above
    return found


def is_awaited(session: Session) -> bool:
    """Return whether a call in another session waits for the answer of this one."""
    call = session.caller_message_id
    return bool(call) and ChatMessage.objects.filter(pk=call, status=MessageStatus.WAITING).exists()


def waits_for(session_id: str) -> Wait:
    """Return what a session waits for from people."""
    state = SessionRun.objects.values_list("state", flat=True).get(pk=session_id)
    return _waits(state, _open_calls([session_id])[session_id])


def outdated_calls() -> list[ChatMessage]:
    """Return the calls whose stored wait differs from what their session waits for now.

    A wait passes up one level at a time. If the reports of two levels are missing, the upper call is found after the
    lower one is updated.
    """
    calls = _delegated_calls()
    known = {(call.session_id, call.pk): call for call in calls.only("session", "subsession")}
    if not known:
        return []
    children = Session.objects.filter(caller_session__in=calls.values("session")).exclude(status=Session.Status.DELETED)
    rows = list(children.values_list("caller_session", "caller_message_id", "pk", "run__state"))
    of_child = _open_calls([child for *_above, child, _state in rows])
    found = []
    for session_id, pk, child, state in rows:
        call = known.get((str(session_id), pk))
        # An idle run has ended, so `ended_calls` finds its call.
        if call is None or state == RunState.IDLE or not isinstance(call.subsession, dict):
            continue
        if _waits(state, of_child[child]) != Wait.of(call.subsession):
            found.append(call)
    return found


def _open_calls(session_ids: Sequence[str]) -> dict[str, list[ChatMessage]]:
    """Return the waiting calls in the open turns of these sessions, by session and in order."""
    calls = ChatMessage.objects.filter(
        session__in=session_ids, turn_id=F("session__run__turn_id"), status=MessageStatus.WAITING
    )
    found: dict[str, list[ChatMessage]] = {session_id: [] for session_id in session_ids}
    for row in calls.order_by("sequence").only("session", "question", "asked", "status", "approval", "subsession"):
        found[row.session_id].append(row)
    return found


def _waits(state: str, calls: Iterable[ChatMessage]) -> Wait:
    if state not in (RunState.RUNNING, RunState.WAITING):
        return Wait()
    waits = []
    for row in calls:
        if isinstance(row.subsession, dict):
            waits.append(Wait.of(row.subsession))
        elif row.question == QuestionKind.APPROVAL and not row.asked and state == RunState.WAITING:
            standing = standing_of(row.approval)
            waits.append(Wait("approval", tuple(sorted(standing.approved_by)) if standing else ()))
        elif state == RunState.WAITING or row.is_asking:
            waits.append(Wait("answer"))
    open_waits = [wait for wait in waits if wait.kind]
    if not open_waits:
        return Wait()
    agreed = set.intersection(*(set(wait.agreed) for wait in open_waits))
    return Wait(open_waits[0].kind, tuple(sorted(agreed)))


def ended_calls() -> QuerySet[ChatMessage]:
    """Return the calls for which turns wait although the other agent has ended."""
    works = Session.objects.filter(caller_session=OuterRef("session"), caller_message_id=OuterRef("pk"))
    works = works.exclude(status=Session.Status.DELETED).exclude(run__state=RunState.IDLE)
    return _delegated_calls().filter(~Exists(works))


def _delegated_calls() -> QuerySet[ChatMessage]:
    """Return the calls of turns that wait for other agents. The query finds them through the index of waiting runs."""
    turns = {"session__run__state": RunState.WAITING, "turn_id": F("session__run__turn_id")}
    return ChatMessage.objects.filter(status=MessageStatus.WAITING, subsession__isnull=False, **turns)
