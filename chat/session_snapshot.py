"""A session as a plain value, and the status of its agent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from agents.messages import Json
from agents.reasoning import Reasoning
from chat.models import RunState, Session, SessionRun, User

AgentStatus = Literal["idle", "thinking", "tool_calling", "waiting"]
# The agent's activity other than answering.
Activity = Literal["", "compacting", "retrying"]
# How a compaction ended. "changed": messages were changed while the model read them. "nothing": there were none.
CompactionOutcome = Literal["done", "failed", "stopped", "changed", "nothing"]


@dataclass(frozen=True, slots=True)
class AgentState:
    """What a session's agent is doing. `asked` is the record of another agent's session for which it waits, or None."""

    status: AgentStatus
    tool_name: str
    activity: Activity
    asked: Json | None


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """A session's own state. `agent_status` is idle, thinking, tool_calling or waiting (RUN-03).

    `agents` are all of its agents, its own first, if there are several: names, titles, providers, models and icons.
    `agent_title` is the title of its own agent, or "" if no other agent is offered. `agent_icon` is the icon of its own
    agent, or "". `reasoning_effort` and `thinking_budget` are the session's choice as far as its model offers one; ""
    and None leave it to the model.

    `archived_by` and `archived_by_id` are the user who has archived it, or "" and None if it is not archived.
    `activity` is "compacting" while the agent summarizes earlier messages instead of answering. `asked` is the record
    of another agent's session for which this one waits; only pages show it.
    """

    id: str
    title: str
    status: str
    agent: str
    provider: str
    model: str
    system_prompt: str
    owner_id: int
    revision: int
    context_used: int | None
    context_window: int | None
    session_total_tokens: int
    agent_status: AgentStatus
    tool_name: str
    agent_title: str = ""
    agent_icon: str = ""
    mode: str = Session.Mode.AGENT.value
    replies: str = Session.Replies.ALL.value
    replies_auto: bool = False
    agents: tuple[Json, ...] = ()
    reasoning_effort: str = ""
    thinking_budget: int | None = None
    activity: Activity = ""
    archived_by: str = ""
    archived_by_id: int | None = None
    asked: Json | None = None

    @classmethod
    def from_row(
        cls,
        session: Session,
        state: AgentState,
        reasoning: Reasoning,
        agents: tuple[Json, ...],
        *,
        agent_title: str,
        agent_icon: str,
    ) -> SessionSnapshot:
        archiver = _archiver_of(session)
        return cls(
            id=session.id,
            title=session.title,
            status=session.status,
            agent=session.agent,
            provider=session.provider,
            model=session.model,
            system_prompt=session.system_prompt,
            owner_id=session.owner_id,
            revision=session.revision,
            context_used=session.context_used,
            context_window=session.context_window,
            session_total_tokens=session.total_tokens,
            agent_status=state.status,
            tool_name=state.tool_name,
            agent_title=agent_title,
            agent_icon=agent_icon,
            mode=session.mode,
            replies=session.replies,
            replies_auto=session.replies_auto,
            agents=agents,
            reasoning_effort=reasoning.effort,
            thinking_budget=reasoning.budget,
            activity=state.activity,
            archived_by=archiver.sender if archiver else "",
            archived_by_id=archiver.pk if archiver else None,
            asked=state.asked,
        )

    @property
    def context_percent(self) -> float | None:
        return context_percent(self.context_used, self.context_window)

    @property
    def icons(self) -> dict[str, str]:
        """The icons of its agents by name, for agents that have one."""
        known = {self.agent: self.agent_icon} | {each["name"]: each["icon"] for each in self.agents}
        return {name: icon for name, icon in known.items() if icon}

    def to_json(self) -> Json:
        values = {**asdict(self), "agents": list(self.agents), "context_percent": self.context_percent}
        del values["asked"]
        return values


def context_percent(used: int | None, window: int | None) -> float | None:
    """Return the percentage of the context window in use, with one decimal, or None if a value is unknown (RUN-04)."""
    if used is None or not window:
        return None
    return round(used * 100 / window, 1)


def agent_state(run: SessionRun, running_tool: str, asked: Json | None, *, is_asking: bool) -> AgentState:
    """Return the agent's present state. `asked` is the record of the running call's subsession, if it has one."""
    status, tool_name = agent_status(run, running_tool, is_asking=is_asking)
    activity: Activity = "compacting" if run.compacting and run.state != RunState.IDLE else ""
    return AgentState(status, tool_name, activity, asked if status == "tool_calling" else None)


def agent_status(run: SessionRun, running_tool: str, *, is_asking: bool = False) -> tuple[AgentStatus, str]:
    """Return the agent's present status from the rows (RUN-03) and, while tools run, the tool's name.

    `is_asking` is True if a running tool waits for people.
    """
    if run.state == RunState.IDLE:
        return "idle", ""
    if (run.state == RunState.WAITING and not run.delegating) or (run.state == RunState.RUNNING and is_asking):
        return "waiting", ""
    if running_tool:
        return "tool_calling", running_tool
    return "thinking", ""


def _archiver_of(session: Session) -> User | None:
    archived_by = session.archived_by_id if session.status == Session.Status.ARCHIVED else None
    # Not `session.archived_by`, because a release without this column may have deleted the user.
    return User.objects.filter(pk=archived_by).first() if archived_by is not None else None
