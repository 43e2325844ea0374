"""The only module that determines which agents exist: those of staff, then those of the configuration file, and then
those that members of a workspace have made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from agents.approval import Rules, stored_guarded_rules, valid_guarded_rules, valid_rules
from agents.config import MAX_SHARE, MIN_SHARE
from agents.delegates import EVERY, PREFIX, is_delegate
from agents.mcp.config import SEPARATOR, server_of
from agents.messages import Json
from agents.reasoning import Reasoning
from agents.registry import AgentPreset, Prompt, opening
from agents.toolbox.address_policy import host_pattern
from chat.access import agents_in
from chat.agents_setup import registry
from chat.commands import MAX_ROUNDS
from chat.errors import Invalid
from chat.models import APPROVED, IMPORTED, SENDING, Session, User
from chat.models import AgentPreset as PresetRow
from chat.queries import mcp_servers, reasoning
from chat.queries.agent_icons import ICONS

MAX_HOSTS = 100
MAX_FILE_NAME_LENGTH = 255
# The rules for approval of an agent.
RULES = ("allow", "ask", "deny")
# The icon of a session's agent.
ICON = "agent_icon"
# The files of the workspace that a session's agent uses (`chat/queries/knowledge.py`).
KNOWLEDGE = "knowledge"
# A digest of the files of its preset. A new preset brings its own files, unless users have chosen other ones.
KNOWLEDGE_DIGEST = "knowledge_digest"


def presets(user: User | None = None, workspace_id: int | None = None) -> list[AgentPreset]:
    """Return the agents that a new session may begin with, the default one first, never empty. One query.

    Agents of the configuration file have the position 0, in their order; rows have their `position`. With a user and a
    workspace, the agents of its members that the user may use come last, by title.
    """
    visible = Q(workspace=None)
    if user is not None and workspace_id is not None:
        visible |= Q(pk__in=agents_in(user, workspace_id).filter(archived_at=None).values("pk"))
    rows = list(PresetRow.objects.filter(visible))
    made = sorted((row for row in rows if row.workspace_id), key=lambda row: (row.title.casefold(), row.name))
    return _offered_presets({row.name: row for row in rows if not row.workspace_id}) + list(map(of_row, made))


def preset(name: str = "") -> AgentPreset:
    """Return the preset with this name, offered or not, or the default one for an unknown name. One query.

    Agents of members are not found by name alone, because the name may come from an imported file.
    """
    rows = {row.name: row for row in PresetRow.objects.filter(workspace=None)}
    if name in rows:
        return of_row(rows[name])
    from_file = registry().preset(name)
    return from_file if from_file.name == name else _offered_presets(rows)[0]


def offered_preset(name: str, user: User | None = None, workspace_id: int | None = None) -> AgentPreset | None:
    """Return the preset with this name, or the default one for "", if a new session may begin with it. One query.

    Agents of members are included if the user may use them in the workspace.
    """
    known = presets(user, workspace_id)
    return next((each for each in known if each.name == name), None) if name else known[0]


def copies_of_others(session: Session) -> list[Json]:
    """Return the session's copies of its other agents, including removed ones (`chat/queries/cast.py`)."""
    found = session.config_values.get("agents")
    entries = found if isinstance(found, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]


def without_approvals(config: Json) -> Json:
    """Return a session's configuration without the approvals that users gave in it."""
    kept = {name: value for name, value in config.items() if name != APPROVED}
    if isinstance(kept.get("agents"), list):
        entries = [entry for entry in kept["agents"] if isinstance(entry, dict)]
        kept["agents"] = [{name: each[name] for name in each if name != APPROVED} for each in entries]
    return kept


def own(session: Session, agent: str = "") -> AgentPreset:
    """Return the session's own copy of its agent as it is now, including opening prompts.

    A session in `chat` mode has no tools (MSG-09). `agent` selects another agent of the session. There is no query,
    unless the session began before copies were kept. Then its preset of today is used, or the default one.
    """
    config = session.config_values
    for entry in copies_of_others(session):
        if agent == entry["name"] != session.agent and (copied := _read_copy(agent, entry)) is not None:
            return replace(
                copied,
                provider=str(entry.get("provider", "")),
                model=str(entry.get("model", "")),
                system_prompt=str(entry.get("system_prompt", "")),
                tools=() if session.mode == Session.Mode.CHAT else copied.tools,
                knowledge=tuple(dict.fromkeys((*copied.knowledge, *(_texts(config.get(KNOWLEDGE)) or ())))),
                is_imported=bool(config.get(IMPORTED)),
                rules=_with_approvals(copied.rules, entry.get(APPROVED)),
            )
    own_copy = agent_copy(session)
    return replace(
        own_copy,
        provider=session.provider,
        model=session.model,
        system_prompt=session.system_prompt,
        tools=() if session.mode == Session.Mode.CHAT else own_copy.tools,
        is_imported=bool(config.get(IMPORTED)),
        rules=_with_approvals(own_copy.rules, config.get(APPROVED)),
    )


def _with_approvals(rules: Rules, stored: object) -> Rules:
    """Add the rules by which users have approved calls in a session."""
    named = [rule for rule in stored if isinstance(rule, str)] if isinstance(stored, list) else []
    sending = [rule.removeprefix(SENDING) for rule in named if rule.startswith(SENDING)]
    return replace(rules, approved=valid_rules(named), approved_sending=valid_rules(sending))


def agent_copy(session: Session) -> AgentPreset:
    """Return the session's own copy of its agent: title, tools, rounds and opening prompts, in any mode."""
    return _read_copy(session.agent, session.config_values) or preset(session.agent)


def limits() -> tuple[set[str], int]:
    """Return the tools and the largest number of tool rounds that users may choose: those of any offered preset."""
    known = presets()
    return {tool for each in known for tool in each.tools}, max(each.max_rounds for each in known)


def config_with(session: Session, *, tools: Sequence[str] | None = None, max_rounds: int | None = None) -> Json:
    """Return the session's `config` with other tools or another number of tool rounds; None keeps the present ones.

    Raise Invalid for tools that are not offered, unless the session has them already, and for too many rounds.
    """
    own_copy = agent_copy(session)
    allowed, most = limits()
    allowed |= set(own_copy.tools) | mcp_servers.patterns_for(session)
    if unknown := [name for name in tools or () if name not in allowed]:
        words = _("Unknown tool “%(tool)s”. Choose from: %(known)s.")
        raise Invalid(words % {"tool": unknown[0], "known": ", ".join(sorted(allowed))})
    most = max(most, own_copy.max_rounds)
    if max_rounds is not None and not 1 <= max_rounds <= most:
        raise Invalid(_("Choose between 1 and %(most)d tool rounds.") % {"most": most})
    return {
        "agent_title": own_copy.title,
        ICON: own_copy.icon,
        "prompts": stored_prompts(own_copy.prompts),
        **session.config_values,
        "tools": list(own_copy.tools if tools is None else dict.fromkeys(tools)),
        "max_rounds": own_copy.max_rounds if max_rounds is None else max_rounds,
        "allowed_hosts": list(own_copy.allowed_hosts),
    }


def copy_of(chosen: AgentPreset) -> Json:
    """Return the values of a preset for `Session.config`. The model and the system prompt are in columns."""
    return {
        "agent_title": chosen.title,
        ICON: chosen.icon,
        "tools": list(chosen.tools),
        "max_rounds": chosen.max_rounds,
        "prompts": stored_prompts(chosen.prompts),
        "prompt_digest": _digest(chosen.system_prompt),
        "allowed_hosts": list(chosen.allowed_hosts),
        "approval": stored_rules(chosen.rules),
        "compact_at": chosen.compact_at,
        "memory": chosen.memory,
        KNOWLEDGE: list(chosen.knowledge),
        KNOWLEDGE_DIGEST: _digest_of(chosen.knowledge),
        **chosen.reasoning.to_config(),
    }


def compact_at(session: Session) -> int:
    """Return the percentage of the context window at which the session summarizes earlier messages; 0 means never."""
    share = session.config_values.get("compact_at")
    return share if type(share) is int and MIN_SHARE <= share <= MAX_SHARE else 0


def has_own_knowledge(session: Session) -> bool:
    """Return whether users have chosen other files for the session than those of its preset."""
    digest = session.config_values.get(KNOWLEDGE_DIGEST) or _digest_of(preset(session.agent).knowledge)
    return bool(_digest_of(agent_copy(session).knowledge) != digest)


def has_own_prompt(session: Session) -> bool:
    """Return whether users have given the session another system prompt than that of its preset."""
    digest = session.config_values.get("prompt_digest") or _digest(preset(session.agent).system_prompt)
    return bool(_digest(session.system_prompt) != digest)


def shown_title(session: Session) -> str:
    """Return the title of the session's agent, or "" if only one agent is offered. One query."""
    rows = dict(PresetRow.objects.filter(workspace=None).values_list("name", "is_offered"))
    names = {each.name for each in registry().presets() if rows.get(each.name, True)}
    names |= {name for name, is_offered in rows.items() if is_offered}
    return own(session).title if len(names | {session.agent}) > 1 else ""


def check_model(model: str) -> None:
    """Check the model of a preset; "" means the default one. Raise Invalid."""
    if model and not registry().may_be(model):
        known = ", ".join(f"{choice.provider}/{choice.model}" for choice in registry().known_models() if choice.model)
        words = _("No provider here offers the model “%(model)s”. Choose one of: %(known)s.")
        raise Invalid(words % {"model": model, "known": known})


def tool_names() -> list[str]:
    """Return all names for the tools of a preset: tools, MCP servers of any workspace, other agents. Two queries."""
    agents = [f"{PREFIX}{each.name}" for each in presets()]
    several = [EVERY, *agents] if len(agents) > 1 else []
    return list(dict.fromkeys((*registry().tool_names(), *mcp_servers.all_patterns(), *several)))


def check_tools(names: Iterable[str]) -> None:
    """Check the names of a preset's tools. Raise Invalid."""
    known = tool_names()
    servers = {name.partition(SEPARATOR)[0] for name in known if SEPARATOR in name}
    unknown = [
        name for name in names if not (registry().may_be_tool(name) or server_of(name, servers) or is_delegate(name))
    ]
    if unknown:
        words = _("Unknown tool “%(tool)s”. Choose from: %(known)s.")
        raise Invalid(words % {"tool": unknown[0], "known": ", ".join(known)})


def check_reasoning(model: str, effort: str, budget: int | None) -> None:
    """Check the reasoning settings of a preset, if it is known what its model offers. Raise Invalid."""
    choice = registry().choice(model)
    if registry().reasoning_support(choice.provider, choice.model) is not None:
        reasoning.check(choice.provider, choice.model, effort, budget)


def checked_hosts(names: Iterable[str]) -> list[str]:
    """Return the hosts that a preset allows, in the form in which they are compared. Raise Invalid."""
    hosts = []
    for name in names:
        try:
            hosts.append(host_pattern(name))
        except ValueError:
            words = _(
                "“%(host)s” is not a host. Enter a name such as example.com, or *.example.com for its subdomains."
            )
            raise Invalid(words % {"host": name}) from None
    if len(hosts) > MAX_HOSTS:
        raise Invalid(_("You can list up to %(count)s hosts.") % {"count": MAX_HOSTS})
    return hosts


def checked_knowledge(names: Iterable[str]) -> list[str]:
    """Return the names and patterns of files that a preset uses, without duplicates. Raise Invalid for too many."""
    entries = list(dict.fromkeys(names))
    if len(entries) > MAX_HOSTS or any(len(each) > MAX_FILE_NAME_LENGTH for each in entries):
        raise Invalid(_("You can list up to %(count)s files.") % {"count": MAX_HOSTS})
    return entries


def _offered_presets(rows: dict[str, PresetRow]) -> list[AgentPreset]:
    known = {each.name: each for each in registry().presets()}
    places = {name: (0, place) for place, name in enumerate(known)}
    last = (0, len(known))
    places |= {row.name: (row.position, places.get(row.name, last)[1]) for row in rows.values()}
    known |= {row.name: of_row(row) for row in rows.values()}
    default = registry().default_agent
    names = sorted(known, key=lambda name: (name != default, *places[name], name))
    # There must be an agent, even if all are hidden.
    return [known[name] for name in names if name not in rows or rows[name].is_offered] or [known[default]]


def of_row(row: PresetRow) -> AgentPreset:
    """Return the agent that a row describes. A row without a model gets the default one of this server.

    A row has no setting for notes and for compaction. A row that replaces an agent of the configuration file keeps that
    agent's.
    """
    choice = registry().choice(row.model)
    configured = registry().preset(row.name)
    is_replaced = configured.name == row.name and not row.workspace_id
    return AgentPreset(
        name=row.name,
        title=row.title or row.name,
        provider=choice.provider,
        model=choice.model,
        system_prompt=row.system_prompt,
        tools=_texts(row.tools) or (),
        max_rounds=row.max_rounds,
        prompts=prompts_of(row.prompts),
        reasoning=Reasoning(row.reasoning_effort, row.thinking_budget),
        allowed_hosts=_texts(row.allowed_hosts) or (),
        compact_at=configured.compact_at if is_replaced else 0,
        memory=configured.memory if is_replaced else True,
        knowledge=_texts(row.knowledge) or (),
        rules=rules_of(row.approval),
        icon=row.icon,
    )


def _read_copy(name: str, config: Json) -> AgentPreset | None:
    """Return a session's copy of its agent, or None if there is none or an edit has made it invalid."""
    tools, rounds = _texts(config.get("tools")), config.get("max_rounds")
    if tools is None or type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS:
        return None
    title = config.get("agent_title")
    hosts = _texts(config.get("allowed_hosts", []))
    if hosts is None:
        return None
    return AgentPreset(
        name=name,
        title=title if isinstance(title, str) and title else name,
        # `own` adds these from the session, or from the entry of another agent.
        provider="",
        model="",
        system_prompt="",
        tools=tools,
        max_rounds=rounds,
        prompts=prompts_of(config.get("prompts")),
        reasoning=Reasoning.of(config),
        allowed_hosts=hosts,
        rules=rules_of(config.get("approval")),
        knowledge=_texts(config.get(KNOWLEDGE)) or (),
        icon=icon_of(config),
    )


def icon_of(config: Json) -> str:
    """Return the icon in a session's copy of an agent, or ""."""
    found = config.get(ICON)
    return found if found in ICONS else ""


def stored_rules(rules: Rules) -> Json:
    """Return an agent's own rules as JSON for a row or a session's copy of its agent."""
    return {**{name: list(getattr(rules, name)) for name in RULES}, "guarded": stored_guarded_rules(rules.guarded)}


def rules_of(value: object) -> Rules:
    """Parse what `stored_rules` returns. Entries that an edit has made invalid are left out."""
    found = value if isinstance(value, dict) else {}
    plain = {name: valid_rules(found.get(name)) for name in RULES}
    return Rules(**plain, guarded=valid_guarded_rules(found.get("guarded")))


def stored_prompts(prompts: Iterable[str]) -> list[Any]:
    """Return prompts as JSON for a row or a session's copy of its agent."""
    return [opening(prompt).to_json() for prompt in prompts]


def prompts_of(value: object) -> tuple[Prompt, ...]:
    """Parse what `stored_prompts` returns. Return no prompts if an edit has made them invalid."""
    try:
        return tuple(map(opening, value)) if isinstance(value, list) else ()
    except ValueError:
        return ()


def _texts(value: object) -> tuple[str, ...] | None:
    """Return a JSON list of strings as a tuple, or None for anything else."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return None
    return tuple(value)


def _digest_of(entries: Sequence[str]) -> str:
    return _digest(json.dumps(list(entries)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
