"""Create and rename sessions, and change their agent, model and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from django.db import transaction
from django.utils.translation import gettext as _

from agents.config import MAX_SHARE, MIN_SHARE
from agents.errors import ModelNotFound
from agents.reasoning import Reasoning
from chat import ids
from chat.agents_setup import registry
from chat.errors import Invalid, ServiceError
from chat.limits.rates import limited, spend
from chat.models import APPROVED, Session, SessionRevision, SessionRun, User, Workspace
from chat.queries import presets
from chat.queries import reasoning as reasoning_options
from chat.queries.knowledge import checked_choice
from chat.queries.presets import KNOWLEDGE
from chat.services.messages.sending import send_message
from chat.services.messages.validation import validate_characters
from chat.services.people.workspaces import current_workspace
from chat.services.sessions import titles
from chat.services.sessions.agents import NoSuchAgent, chosen_agent
from chat.services.sessions.fields import change, change_config
from chat.services.sessions.replies import AUTOMATIC, reply_columns
from chat.services.transaction import SessionTransaction, notify_session_lists
from chat.services.webhooks import outbox


class Configuration(TypedDict, total=False):
    """The settings in which a session may differ from its agent. None keeps a value.

    `mode` is that of the next turns (MSG-09). `replies` selects the messages that the agent answers, from the next one
    on: "all", "mentions" or "auto". An empty `reasoning_effort` and a `thinking_budget` of 0 leave the choice to the
    model. `compact_at` is the percentage of the context window at which earlier messages are summarized; 0 is never.
    `memory` is True if the agent gets remembered notes. `knowledge` has the ids of the workspace's files that the agent
    uses; `*` means all files.
    """

    mode: str | None
    replies: str | None
    tools: Sequence[str] | None
    max_rounds: int | None
    reasoning_effort: str | None
    thinking_budget: int | None
    compact_at: int | None
    memory: bool | None
    knowledge: Sequence[str] | None


class Choice(TypedDict):
    """The agent and model of a new session. "" means the default agent, or the agent's model."""

    agent: str
    provider: str
    model: str


class SessionFields(TypedDict, total=False):
    """Optional arguments of `create_session`."""

    workspace: Workspace | None
    agent: str
    provider: str
    model: str
    title: str
    system_prompt: str | None
    session_id: str
    key_digest: str | None
    replies: str


UNCHANGED: tuple[dict[str, object], ...] = ({}, {"mode": Session.Mode.AGENT})


@transaction.atomic
def create_session(
    *,
    owner: User,
    workspace: Workspace | None = None,
    agent: str = "",
    provider: str = "",
    model: str = "",
    title: str = "",
    system_prompt: str | None = None,
    session_id: str = "",
    key_digest: str | None = None,
    replies: str = Session.Replies.ALL,
) -> Session:
    """Create a session with a copy of an agent preset, or of the default preset if the agent is not offered.

    `replies` selects the messages that the agent answers: "all", "mentions" or "auto". With "auto", the agent answers
    all messages until other users can write, too.
    """
    workspace = workspace or current_workspace(owner)
    preset = presets.offered_preset(agent, owner, workspace.pk) or presets.preset()
    if not model:
        provider, model = preset.provider, preset.model
    session = Session.objects.create(
        pk=session_id or ids.session_id(),
        workspace=workspace,
        owner=owner,
        title=validate_characters(" ".join(title.split()))[:200],
        agent=preset.name,
        system_prompt=preset.system_prompt if system_prompt is None else validate_characters(system_prompt),
        config=presets.copy_of(preset),
        key_digest=key_digest,
        replies=Session.Replies.ALL if replies == AUTOMATIC else replies,
        replies_auto=replies == AUTOMATIC,
        **_of_model(provider, model),
    )
    SessionRun.objects.create(session=session)
    outbox.session_created(session)
    notify_session_lists(sessions=[session.pk])
    return session


@limited("sessions", by="owner")
def begin_session(
    *,
    owner: User,
    text: str = "",
    key: str | None = None,
    configuration: Configuration | None = None,
    **fields: Unpack[SessionFields],
) -> Session:
    """Create a session and send its first message, if there is one, with this `key`, in one transaction.

    The caller checks the right to `workspace`; None is the owner's current one. Raise ServiceError for an agent, model
    or tool that is not offered, or a text that cannot be sent.
    """
    agent, provider, model = fields.get("agent", ""), fields.get("provider", ""), fields.get("model", "")
    fields["workspace"] = workspace = fields.get("workspace") or current_workspace(owner)
    if agent and presets.offered_preset(agent, owner, workspace.pk) is None:
        raise NoSuchAgent(agent)
    if model:
        fields["provider"], fields["model"] = _offered_model(provider, model)
    if text.strip():
        spend("sends", owner.pk)
    with transaction.atomic():
        session = create_session(owner=owner, **fields)
        configuration = configuration or {}
        if {name: value for name, value in configuration.items() if value is not None} not in UNCHANGED:
            configure(session=session, author=owner, **configuration)
            session.refresh_from_db()
        if text.strip():
            send_message(session=session, author=owner, text=text, key=key)
    return session


@transaction.atomic
def rename(*, session: Session, author: User, title: str) -> None:
    """Set the session's title, of at most 200 characters. It is never replaced by an automatic title.

    Raise ServiceError.
    """
    title = validate_characters(" ".join(title.split()))
    if len(title) > 200:
        raise ServiceError("too_long", _("A title can have up to 200 characters."))
    tx = SessionTransaction.lock(session.pk)
    change(tx, author, title=title, config=titles.unmarked(tx.session))


@transaction.atomic
def set_model(*, session: Session, author: User, provider: str, model: str) -> None:
    """Set the model of the next response (RUN-16) and its context window (RUN-05)."""
    provider, model = _offered_model(provider, model)
    change(SessionTransaction.lock(session.pk), author, **_of_model(provider, model))


@limited("sends", by="author")
@transaction.atomic
def send_first_message(
    *,
    session: Session,
    author: User,
    text: str,
    attachments: Sequence[str],
    key: str | None = None,
    **choice: Unpack[Choice],
) -> None:
    """Send the first message of an empty session, after setting the agent and model that were chosen for it.

    The caller checks the author's rights. Raise ServiceError.
    """
    agent, provider, model = choice["agent"], choice["provider"], choice["model"]
    if agent and agent != session.agent:
        set_agent(session=session, author=author, agent=agent)
    if model:
        set_model(session=session, author=author, provider=provider, model=model)
    send_message(session=session, author=author, text=text, key=key, attachment_ids=attachments)


@transaction.atomic
def set_agent(*, session: Session, author: User, agent: str) -> None:
    """Set the agent preset of the next response, with its tools, its system prompt, and its model if that is offered.

    A system prompt that a user wrote stays, and so do files that users have chosen. Approvals that people gave in this
    session are removed, because they were for the previous agent. Raise ServiceError.
    """
    chosen = chosen_agent(session, author, agent)
    tx = SessionTransaction.lock(session.pk)
    kept = {name: value for name, value in tx.session.config_values.items() if name != APPROVED}
    config = {**kept, **presets.copy_of(chosen)}
    if presets.has_own_knowledge(tx.session):
        config[KNOWLEDGE] = kept.get(KNOWLEDGE, [])
    values: dict[str, object] = {"agent": chosen.name, "config": config}
    if not presets.has_own_prompt(tx.session):
        values["system_prompt"] = chosen.system_prompt
    if registry().offers(chosen.provider, chosen.model):
        values |= _of_model(chosen.provider, chosen.model)
    change(tx, author, **values)


@transaction.atomic
def configure(*, session: Session, author: User, **settings: Unpack[Configuration]) -> None:
    """Change settings of the session, from the next response on.

    Raise ServiceError for a tool or a number of rounds that users may not choose, an unknown mode, reasoning that the
    model does not offer, or an archived session.
    """
    mode, replies, compact_at = settings.get("mode"), settings.get("replies"), settings.get("compact_at")
    tools, max_rounds, knowledge = settings.get("tools"), settings.get("max_rounds"), settings.get("knowledge")
    effort, budget = settings.get("reasoning_effort"), settings.get("thinking_budget")
    _require_valid(mode, replies, compact_at)
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    values: dict[str, object] = {"agent": tx.session.agent}
    if replies is not None:
        values |= reply_columns(session.pk, replies)
    files = None if knowledge is None else checked_choice(tx.session, knowledge)
    chosen = {"compact_at": compact_at, "memory": settings.get("memory"), KNOWLEDGE: files}
    kept = {name: value for name, value in chosen.items() if value is not None}
    if tools is not None or max_rounds is not None or kept:
        values["config"] = {**presets.config_with(tx.session, tools=tools, max_rounds=max_rounds), **kept}
    if mode is not None:
        values["mode"] = mode
    change(tx, author, **values)
    if effort is not None or budget is not None:
        set_reasoning(session=session, author=author, effort=effort, budget=budget)


def _require_valid(mode: str | None, replies: str | None, compact_at: int | None) -> None:
    if mode is not None and mode not in Session.Mode.values:
        raise Invalid(_("The mode must be one of: %(modes)s.") % {"modes": ", ".join(Session.Mode.values)})
    if replies is not None and replies not in (*Session.Replies.values, AUTOMATIC):
        raise Invalid(_("The agent can reply to: %(choices)s.") % {"choices": ", ".join(Session.Replies.values)})
    if compact_at and not MIN_SHARE <= compact_at <= MAX_SHARE:
        words = _("Choose a percentage from %(least)d to %(most)d, or 0 to turn it off.")
        raise Invalid(words % {"least": MIN_SHARE, "most": MAX_SHARE})


@transaction.atomic
def set_reasoning(*, session: Session, author: User, effort: str | None = None, budget: int | None = None) -> None:
    """Set the reasoning of the next response: its effort, its thinking budget in tokens, or both.

    None keeps a value; "" and 0 leave it to the model. Raise Invalid for reasoning that the model does not offer.
    """
    tx = SessionTransaction.lock(session.pk)
    reasoning_options.check(tx.session.provider, tx.session.model, effort, budget)
    chosen = reasoning_options.changed(Reasoning.of(tx.session.config_values), effort, budget)
    change_config(tx, author, SessionRevision.Kind.REASONING, **chosen.to_config())


@transaction.atomic
def set_system_prompt(*, session: Session, author: User, system_prompt: str, seen: str | None = None) -> None:
    """Change the system prompt, from the next response on.

    `seen` is the prompt that the author's change is based on. Raise ServiceError "stale", with the `current` prompt,
    if it was changed since, and ServiceError if the session is archived.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    present = tx.session.system_prompt
    if seen is not None and present not in (seen, system_prompt):
        raise ServiceError("stale", _("The system prompt was changed in the meantime."), current=present)
    change(tx, author, system_prompt=validate_characters(system_prompt))


def _of_model(provider: str, model: str) -> dict[str, object]:
    return {"provider": provider, "model": model, "context_window": registry().context_window(provider, model)}


def _offered_model(provider: str, model: str) -> tuple[str, str]:
    """Return a provider and model that the server offers. If `provider` is "", find the one that lists the model."""
    try:
        if model:
            return registry().resolve(provider, model)
    except ModelNotFound:
        pass
    message = _("The model “%(model)s” isn’t configured here.")
    if provider:
        message = _("The model “%(model)s” of “%(provider)s” isn’t configured here.")
    raise ServiceError("no_such_model", message % {"model": model, "provider": provider})
