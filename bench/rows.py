"""The users, sessions and messages of the benchmark, written directly to the server's database."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.core.management import call_command

from bench.text import tokens
from chat.models import ChatMessage, Membership, MessageRole, MessageType, Session, SessionRun, Share, User, Workspace
from chat.queries import presets
from chat.security.session_store import SessionStore
from chat.services.people.accounts import first_administrator
from chat.services.people.workspaces import current_workspace

SAID = "How does this part work, and what would have to change to make it twice as fast? " * 3


def prepare() -> User:
    """Make the tables and the first user of the benchmark, and return the user."""
    call_command("migrate", interactive=False, verbosity=0)
    return first_administrator()


def cookie(user: User) -> str:
    """Sign a browser in, and return its cookie."""
    login = SessionStore()
    login[SESSION_KEY] = str(user.pk)
    login[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    login[HASH_SESSION_KEY] = user.get_session_auth_hash()
    login.save()
    return f"{settings.SESSION_COOKIE_NAME}={login.session_key}"


def sessions(owner: User, count: int, provider: str, messages: int = 0) -> list[str]:
    """Make `count` sessions with `messages` messages each, and return their ids."""
    workspace = current_workspace(owner)
    made = [_session(owner, workspace, provider, messages) for _ in range(count)]
    Session.objects.bulk_create(made)
    SessionRun.objects.bulk_create([SessionRun(session=each) for each in made])
    if messages:
        rows = itertools.chain.from_iterable(_messages(each, owner, messages) for each in made)
        while batch := list(itertools.islice(rows, 2000)):
            ChatMessage.objects.bulk_create(batch)
    return [each.pk for each in made]


def _session(owner: User, workspace: Workspace, provider: str, messages: int) -> Session:
    return Session(
        owner=owner,
        workspace=workspace,
        title=f"{messages} messages",
        agent="agent",
        provider=provider,
        model="bench",
        config=presets.copy_of(presets.preset("agent")),
        revision=messages,
    )


def _messages(session: Session, owner: User, count: int) -> Sequence[ChatMessage]:
    """Return alternating questions and answers of 300 tokens. All answers differ, so that caches do not help."""
    words = tokens()
    return [_message(session, owner, number, "".join(itertools.islice(words, 300))) for number in range(1, count + 1)]


def _message(session: Session, owner: User, number: int, answer: str) -> ChatMessage:
    asked = number % 2 == 1
    return ChatMessage(
        session=session,
        sequence=number,
        revision=number,
        type=MessageType.TEXT,
        role=MessageRole.USER if asked else MessageRole.ASSISTANT,
        text=f"{SAID} ({session.pk})" if asked else f"{answer}\n\n{session.pk}",
        user=owner if asked else None,
        sender="Admin" if asked else "",
        provider="" if asked else session.provider,
        model="" if asked else session.model,
        turn_id=f"t_{(number + 1) // 2:024x}",
        response_id="" if asked else f"r_{number:024x}",
        duration_ms=None if asked else 3200,
    )


def room(owner: User, provider: str, people: int, others: int) -> tuple[str, list[str]]:
    """Make a session that `people` users share, and `others` further sessions. Return its id and the users' cookies."""
    made = sessions(owner, others + 1, provider)
    workspace = current_workspace(owner)
    first = User.objects.count()
    users = [User(username=f"p{number}", display_name=f"P {number}") for number in range(first, first + people)]
    users = User.objects.bulk_create(users)
    Membership.objects.bulk_create([Membership(user=user, workspace=workspace) for user in users])
    shares = [Share(session_id=each, user=user, role="editor") for user in users for each in made]
    Share.objects.bulk_create(shares, batch_size=2000)
    return made[-1], [cookie(user) for user in users]
