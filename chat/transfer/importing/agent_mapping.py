"""Map the agent of an imported session to the models and tools that this server offers."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from agents.messages import Json
from agents.registry import AgentPreset
from chat.agents_setup import registry
from chat.commands import MAX_SYSTEM_PROMPT_LENGTH
from chat.models import APPROVED, FORKED_FILES
from chat.queries import presets
from chat.queries.cast import AGENTS, REMOVED
from chat.services.sessions.agents import MAX_AGENTS
from chat.transfer.document.schema import SessionPart


@dataclass(slots=True)
class MappedAgent:
    """Columns of a session, and notes for the user about changes."""

    columns: Json
    notes: list[str] = field(default_factory=list)


def map_agent(part: SessionPart) -> MappedAgent:
    """Choose the agent, model and tools of a session. Take those of its file as far as this server offers them."""
    agent = presets.offered_preset(part.agent) or presets.preset()
    if not part.agent:  # the file is from another product
        prompt = {"system_prompt": part.system_prompt or agent.system_prompt}
        own = {"agent": agent.name, "config": presets.copy_of(agent)}
        return MappedAgent({**own, **_model(agent.provider, agent.model), **prompt})
    made = MappedAgent(
        {"agent": part.agent, "config": _config(part.config, agent), "system_prompt": part.system_prompt}
    )
    if missing := _missing_tools(part.config, made.columns["config"]):
        words = _("These tools aren’t available here and were left out: %(tools)s.")
        made.notes.append(words % {"tools": ", ".join(missing)})
    if not part.model or registry().offers(part.provider, part.model):
        made.columns |= {"provider": part.provider, "model": part.model, "context_window": part.context_window}
        return made
    made.columns |= _model(agent.provider, agent.model)
    words = _("The model “%(model)s” of “%(provider)s” isn’t configured here. The session uses the agent’s model.")
    made.notes.append(words % {"model": part.model, "provider": part.provider})
    return made


def _model(provider: str, model: str) -> Json:
    return {"provider": provider, "model": model, "context_window": registry().context_window(provider, model)}


def _config(config: Json, agent: AgentPreset) -> Json:
    """Return the session's copy of its agent, limited to the tools and rounds that users may choose on this server.

    Approvals and files of a workspace are not taken from the file. They are those of the agent on this server.
    """
    tools, rounds = config.get("tools"), config.get("max_rounds")
    if not isinstance(tools, list) or type(rounds) is not int or rounds < 1:
        return presets.copy_of(agent)
    allowed, most = presets.limits()
    kept = {name: value for name, value in config.items() if name not in (APPROVED, FORKED_FILES, AGENTS)}
    return {
        **kept,
        **_others(config.get(AGENTS), agent, allowed, most),
        **{name: presets.copy_of(agent)[name] for name in ("approval", presets.KNOWLEDGE, presets.KNOWLEDGE_DIGEST)},
        "tools": [tool for tool in tools if isinstance(tool, str) and tool in allowed],
        "max_rounds": min(rounds, most),
        "allowed_hosts": _hosts(config.get("allowed_hosts"), agent),
    }


def _others(found: object, agent: AgentPreset, allowed: set[str], most: int) -> Json:
    """Return the other agents of a file, limited to the tools, rounds and models that this server offers."""
    entries = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    made = []
    for each in entries[:MAX_AGENTS]:
        name, tools, rounds = each.get("name"), each.get("tools"), each.get("max_rounds")
        title, prompt = each.get("agent_title"), each.get("system_prompt")
        if not isinstance(name, str) or not 0 < len(name) <= 80:
            continue
        if not isinstance(tools, list) or type(rounds) is not int:
            continue
        provider, model = str(each.get("provider", "")), str(each.get("model", ""))
        if not registry().offers(provider, model):
            provider, model = agent.provider, agent.model
        made.append(
            {
                **presets.copy_of(agent),
                "name": name,
                "agent_title": title[:200] if isinstance(title, str) else name,
                presets.ICON: presets.icon_of(each),
                "provider": provider,
                "model": model,
                "system_prompt": prompt[:MAX_SYSTEM_PROMPT_LENGTH] if isinstance(prompt, str) else "",
                "tools": [tool for tool in tools if isinstance(tool, str) and tool in allowed],
                "max_rounds": max(1, min(rounds, most)),
                "allowed_hosts": _hosts(each.get("allowed_hosts"), agent),
                **({REMOVED: True} if each.get(REMOVED) else {}),
            }
        )
    return {AGENTS: made} if made else {}


def _hosts(wanted: object, agent: AgentPreset) -> list[str]:
    """Return the file's hosts that an offered agent may reach. If none remains, return those of the session's agent."""
    hosts = [host for host in wanted if isinstance(host, str)] if isinstance(wanted, list) else []
    on_offer = presets.presets()
    if any(not preset.allowed_hosts for preset in on_offer):
        return hosts
    reached = {host for preset in on_offer for host in preset.allowed_hosts}
    return [host for host in hosts if host in reached] or list(agent.allowed_hosts)


def _missing_tools(config: Json, made: Json) -> list[str]:
    tools = config.get("tools")
    return [str(tool) for tool in tools if tool not in made["tools"]] if isinstance(tools, list) else []
