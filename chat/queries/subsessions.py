"""Sessions in which an agent works for another one: which agents can be asked, and how deep they are."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from agents.delegates import MOST_LEVELS, chosen, delegate, tool_name
from agents.loop import Agent
from agents.registry import AgentPreset
from chat.models import ASKING, ChatMessage, MessageStatus, QuestionKind, RunState, Session, SessionRun
from chat.queries import presets


def with_delegates(agent: Agent, session: Session, preset: AgentPreset) -> Agent:
    """Give an agent the tools for the other agents that its list of tools names; one at the last level gets none."""
    if level(session) >= MOST_LEVELS:
        return agent
    known = {tool.name for tool in agent.tools}
    tools = [delegate(each.name, each.title) for each in _named(preset)]
    return replace(agent, tools=(*agent.tools, *(tool for tool in tools if tool.name not in known)))


def preset_for(call: ChatMessage, preset: AgentPreset) -> AgentPreset | None:
    """Return the agent that a call asks; None if this agent may not ask it (any more)."""
    return next((each for each in _named(preset) if tool_name(each.name) == call.tool_name), None)


def _named(preset: AgentPreset) -> list[AgentPreset]:
    offered = {each.name: each for each in presets.presets()}
    return [offered[name] for name in chosen(preset.tools, offered, preset.name)]


def level(session: Session) -> int:
    """Return how many callers are above a session; 0 without a query for one that people began."""
    count, above = 0, session.caller_session_id
    while above and count < MOST_LEVELS:
        count += 1
        above = Session.objects.filter(pk=above).values_list("caller_session", flat=True).first()
    return count


def below(session_id: str) -> list[str]:
    """Return the sessions that agents began for this one, and those below them."""
    found: list[str] = []
    above = [session_id]
    while above:
        above = list(Session.objects.filter(caller_session__in=above).values_list("pk", flat=True))
        found += above
    return found


def waits_for(session_id: str) -> str:
    """Return what a session waits for from people, itself or for an agent below it: "approval", "answer" or ""."""
    run = SessionRun.objects.get(pk=session_id)
    if run.state not in (RunState.RUNNING, RunState.WAITING):
        return ""
    rows = ChatMessage.objects.filter(session=session_id, turn_id=run.turn_id, status=MessageStatus.WAITING)
    kinds = []
    for row in rows.order_by("sequence").only("question", "asked", "subsession"):
        if row.subsession is not None:
            kinds.append(str(row.subsession.get("waits", "")))
        elif run.state == RunState.WAITING or row.asked is not None:
            kinds.append("approval" if row.question == QuestionKind.APPROVAL and not row.asked else "answer")
    return next(filter(None, kinds), "")


def outdated_calls() -> QuerySet[ChatMessage]:
    """Return the calls whose session waits for people, or does not any more, without its caller knowing."""
    runs = SessionRun.objects.filter(session__caller_session=OuterRef("session"))
    runs = runs.filter(session__caller_message_id=OuterRef("pk"))
    # A missing key is NULL, which is not even different from these.
    known = Q(subsession__has_key="waits") & Q(subsession__waits__in=("approval", "answer"))
    has_asked = Q(Exists(ChatMessage.objects.filter(ASKING, session=OuterRef("pk"))))
    asks = Exists(runs.filter(Q(state=RunState.WAITING, delegating=False) | (Q(state=RunState.RUNNING) & has_asked)))
    goes_on = Exists(runs.filter(~has_asked, state=RunState.RUNNING))
    waiting = ChatMessage.objects.filter(status=MessageStatus.WAITING, subsession__isnull=False)
    return waiting.filter((asks & ~known) | (goes_on & known))


def ended_calls() -> QuerySet[ChatMessage]:
    """Return the calls that turns wait for although the other agent has ended."""
    turns = {"session__run__state": RunState.WAITING, "turn_id": F("session__run__turn_id")}
    waiting = ChatMessage.objects.filter(status=MessageStatus.WAITING, subsession__isnull=False, **turns)
    works = Session.objects.filter(caller_session=OuterRef("session"), caller_message_id=OuterRef("pk"))
    works = works.exclude(status=Session.Status.DELETED).exclude(run__state=RunState.IDLE)
    return waiting.filter(~Exists(works))
