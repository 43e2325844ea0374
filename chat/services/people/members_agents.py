"""Agents that members of a workspace make, share, copy and archive."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from agents.registry import AgentPreset, Prompt
from chat import names
from chat.access import agent_in, agent_to_change, memberships_of, workspace_where
from chat.agents_setup import registry
from chat.commands import MAX_SYSTEM_PROMPT_LENGTH
from chat.errors import Invalid, NoSuchAgentHere, ServiceError
from chat.models import AgentPreset as Row
from chat.models import User, Workspace
from chat.permissions import Permission
from chat.queries import mcp_servers, presets
from chat.queries.agent_icons import ICONS
from chat.queries.preset_prompts import check_prompts
from chat.services.messages.validation import validate_characters
from chat.services.people.security_log import Kind, record

# The most agents of a member in a workspace. As many archived agents are kept besides.
MAX_AGENTS = 50
MAX_TITLE_LENGTH = 80
USUAL_ICON = "sparkles"
# The number of random letters at the end of a name. Because of them, members cannot reserve names, and cannot find out
# which names exist in other workspaces.
_SUFFIX = 6
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings of an agent from a member. `model` is "provider/model", or "" for the default model."""

    title: str
    icon: str = USUAL_ICON
    model: str = ""
    system_prompt: str = ""
    tools: Sequence[str] = ()
    prompts: Sequence[Prompt] = ()


@transaction.atomic
def make(*, author: User, workspace_id: int, given: AgentSettings) -> Row:
    """Make an agent that only its author sees. Raise ServiceError.

    Its other settings, such as the allowed hosts and the rules for approval, are those of the default agent.
    """
    workspace = workspace_where(author, Permission.MAKE_AGENTS, workspace_id)
    return _make(author, workspace, given, presets.presets()[0])


@transaction.atomic
def copy(*, author: User, workspace_id: int, name: str) -> Row:
    """Copy an agent that the author may use in a workspace. Only the author sees the copy. Raise ServiceError."""
    workspace = workspace_where(author, Permission.MAKE_AGENTS, workspace_id)
    source = presets.offered_preset(name) if name else None
    if source is None:
        source = presets.of_row(agent_in(author, workspace.pk, name))
    ending = _("%(title)s (copy)")
    title = ending % {"title": source.title[: MAX_TITLE_LENGTH - len(ending % {"title": ""})]}
    usable = allowed_tools(workspace.pk)
    given = AgentSettings(
        title=title,
        icon=source.icon or USUAL_ICON,
        model=_model_of(source),
        system_prompt=source.system_prompt,
        tools=[tool for tool in source.tools if tool in usable],
        prompts=presets.prompts_of(presets.stored_prompts(source.prompts)),
    )
    return _make(author, workspace, given, source)


@transaction.atomic
def change(*, author: User, workspace_id: int, name: str, given: AgentSettings, revision: int | None = None) -> Row:
    """Change an agent. Sessions keep their copies.

    Raise ServiceError, "agent_changed" if a `revision` is given and the agent has another one now.
    """
    row = _lock(author, workspace_id, name, revision)
    _apply(row, workspace_id, given)
    return _save(author, row, "change")


@transaction.atomic
def update(
    *,
    author: User,
    workspace_id: int,
    name: str,
    given: AgentSettings | None = None,
    shared: bool | None = None,
    archived: bool | None = None,
    revision: int | None = None,
    seen: Collection[int] | None = None,
) -> Row:
    """Apply the given changes in one transaction.

    `seen` are the revisions to which the request applies; None means any. Raise as `change` does, and ServiceError
    "stale" for a revision that is not among `seen`.
    """
    row = _lock(author, workspace_id, name, revision, seen)
    if given is not None:
        row = change(author=author, workspace_id=workspace_id, name=name, given=given)
    if archived is not None:
        row = archive(author=author, workspace_id=workspace_id, name=name, archived=archived)
    if shared is not None:
        row = share(author=author, workspace_id=workspace_id, name=name, shared=shared)
    return row


@transaction.atomic
def share(*, author: User, workspace_id: int, name: str, shared: bool) -> Row:
    """Let all members of the workspace use an agent, or again only its maker. Raise ServiceError."""
    row = _lock(author, workspace_id, name)
    if row.is_shared == shared:
        return row
    if not shared and not (row.user and memberships_of(row.user).filter(workspace=workspace_id).exists()):
        raise Invalid(_("Its creator is no longer a member, so no one could use it. Archive it instead."))
    row.is_shared = shared
    return _save(author, row, "share" if shared else "unshare")


@transaction.atomic
def archive(*, author: User, workspace_id: int, name: str, archived: bool) -> Row:
    """Stop offering an agent for new sessions, or offer it again. Sessions with it keep it. Raise ServiceError."""
    row = _lock(author, workspace_id, name)
    if (row.archived_at is not None) == archived:
        return row
    if not archived:
        _require_room(row.user, workspace_id)
    row.archived_at = timezone.now() if archived else None
    _save(author, row, "archive" if archived else "restore")
    old = _agents_of(row.user, workspace_id).exclude(archived_at=None).order_by("-archived_at")
    Row.objects.filter(pk__in=list(old.values_list("pk", flat=True)[MAX_AGENTS:])).delete()
    return row


@transaction.atomic
def save_for_staff(*, author: User, row: Row) -> None:
    """Save a workspace's agent that staff have changed in the admin, which has validated the values."""
    # The row may be older than the last change of a member.
    locked = Row.objects.select_for_update().filter(pk=row.pk)
    row.revision = locked.values_list("revision", flat=True).first() or row.revision
    _save(author, row, "change")


@transaction.atomic
def delete_for_staff(*, author: User, row: Row) -> None:
    """Delete an agent of a workspace in the admin. Sessions that have it keep it."""
    record(Kind.AGENT_CHANGED, actor=author, person=row.user, target=row, agent=row.name, act="delete")
    row.delete()


def allowed_tools(workspace_id: int) -> set[str]:
    """Return the tools that members may give an agent: those of any agent that staff offer, and MCP servers."""
    return presets.limits()[0] | mcp_servers.patterns_in(workspace_id)


def _make(author: User, workspace: Workspace, given: AgentSettings, like: AgentPreset) -> Row:
    # The lock makes two simultaneous requests count one after the other.
    Workspace.objects.select_for_update().get(pk=workspace.pk)
    _require_room(author, workspace.pk)
    row = Row(
        workspace=workspace,
        user=author,
        max_rounds=like.max_rounds,
        reasoning_effort=like.reasoning.effort if given.model == _model_of(like) else "",
        thinking_budget=like.reasoning.budget if given.model == _model_of(like) else None,
        allowed_hosts=list(like.allowed_hosts),
        knowledge=list(like.knowledge),
        approval=presets.stored_rules(like.rules),
    )
    _apply(row, workspace.pk, given)
    row.name = _new_name(row.title)
    return _save(author, row, "make")


def _apply(row: Row, workspace_id: int, given: AgentSettings) -> None:
    """Validate a member's settings and set them on a row, without saving it. Raise Invalid."""
    title = names.clean(validate_characters(given.title))
    if not 0 < len(title) <= MAX_TITLE_LENGTH:
        raise Invalid(_("Enter a name of up to %(count)d characters.") % {"count": MAX_TITLE_LENGTH})
    if given.icon not in ICONS:
        raise Invalid(_("That’s not one of the options."))
    if given.model != row.model:
        _check_model(given.model)
        if row.pk:  # the stored levels are those of the previous model
            row.reasoning_effort, row.thinking_budget = "", None
    allowed = allowed_tools(workspace_id) | set(row.tools)
    if unknown := [name for name in given.tools if name not in allowed]:
        words = _("Unknown tool “%(tool)s”. Choose from: %(known)s.")
        raise Invalid(words % {"tool": unknown[0], "known": ", ".join(sorted(allowed))})
    if len(given.system_prompt) > MAX_SYSTEM_PROMPT_LENGTH:
        raise Invalid(_("A system prompt can have up to %(count)d characters.") % {"count": MAX_SYSTEM_PROMPT_LENGTH})
    for prompt in given.prompts:
        validate_characters(f"{prompt}{prompt.heading}")
    check_prompts(given.prompts)
    row.title, row.icon, row.model = title, given.icon, given.model
    row.system_prompt = validate_characters(given.system_prompt)
    row.tools = list(dict.fromkeys(given.tools))
    row.prompts = presets.stored_prompts(given.prompts)


def _check_model(model: str) -> None:
    provider, _slash, name = model.partition("/")
    if model and not registry().offers(provider, name):
        raise Invalid(_("The model “%(model)s” isn’t offered here. Choose another one.") % {"model": model[:200]})


def _model_of(preset: AgentPreset) -> str:
    """Return a preset's model as rows store it: "" for the default model, and for a model that is not offered."""
    default = registry().choice("")
    provider, model = preset.provider, preset.model
    is_usual = (provider, model) == (default.provider, default.model)
    return "" if is_usual or not registry().offers(provider, model) else f"{provider}/{model}"


def _new_name(title: str) -> str:
    readable = re.sub(r"[^a-z0-9-]", "", slugify(title))[:40].strip("-") or "agent"
    return f"{readable}-{''.join(secrets.choice(_LETTERS) for _ in range(_SUFFIX))}"


def _lock(
    author: User, workspace_id: int, name: str, revision: int | None = None, seen: Collection[int] | None = None
) -> Row:
    agent_to_change(author, workspace_id, name)
    row = Row.objects.select_for_update().filter(name=name).first()
    if row is None:
        raise NoSuchAgentHere
    words = _("This agent has changed since you opened it.")
    if seen is not None and row.revision not in seen:
        raise ServiceError("stale", words, revision=row.revision)
    if revision not in (None, row.revision):
        raise ServiceError("agent_changed", words, revision=row.revision)
    return row


def _save(author: User, row: Row, act: str) -> Row:
    row.revision += 1
    row.save()
    record(Kind.AGENT_CHANGED, actor=author, person=row.user, target=row, agent=row.name, act=act)
    return row


def _agents_of(maker: User | None, workspace_id: int) -> QuerySet[Row]:
    return Row.objects.filter(workspace=workspace_id, user=maker)


def _require_room(maker: User | None, workspace_id: int) -> None:
    if _agents_of(maker, workspace_id).filter(archived_at=None).count() >= MAX_AGENTS:
        raise Invalid(_("There are %(count)d agents already. Archive one first.") % {"count": MAX_AGENTS})
