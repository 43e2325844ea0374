"""Sessions: making them, naming them, choosing their model."""

from __future__ import annotations

from django.db import transaction

from chat.agents_setup import registry
from chat.models import Session, SessionRun, User, Workspace
from chat.services.accounts import home_workspace
from chat.services.errors import Refused
from chat.services.messages import exact
from chat.services.rows import OpenSession


@transaction.atomic
def create_session(
    *,
    owner: User,
    workspace: Workspace | None = None,
    agent: str = "",
    provider: str = "",
    model: str = "",
    title: str = "",
) -> Session:
    """Make a session with an agent preset; it keeps its own copy of the preset's model and system prompt."""
    preset = registry().preset(agent)
    if not model:
        provider, model = preset.provider, preset.model
    session = Session.objects.create(
        workspace=workspace or home_workspace(owner),
        owner=owner,
        title=exact(title)[:200],
        agent=preset.name,
        provider=provider,
        model=model,
        system_prompt=preset.system_prompt,
        context_window=registry().context_window(provider, model),
    )
    SessionRun.objects.create(session=session)
    return session


@transaction.atomic
def rename(*, session: Session, author: User, title: str) -> None:
    """Give the session a title of at most 200 characters. Raises Refused."""
    title = exact(" ".join(title.split()))
    if len(title) > 200:
        raise Refused("too_long", "A title has at most 200 characters.")
    _change(session, title=title)


@transaction.atomic
def set_model(*, session: Session, author: User, provider: str, model: str) -> None:
    """Choose the model of the next response (RUN-16); its context window is looked up anew (RUN-05)."""
    if not registry().offers(provider, model):
        raise Refused("no_such_model", f"The model “{model}” of “{provider}” is not configured here.")
    _change(session, provider=provider, model=model, context_window=registry().context_window(provider, model))


@transaction.atomic
def set_system_prompt(*, session: Session, author: User, system_prompt: str) -> None:
    """Change what the model is told before all else, from its next response on."""
    _change(session, system_prompt=exact(system_prompt))


def _change(session: Session, **values: object) -> None:
    opened = OpenSession.lock(session.pk)
    for column, value in values.items():
        setattr(opened.session, column, value)
    opened.session_changed()
    opened.save(*values)
