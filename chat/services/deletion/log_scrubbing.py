"""Remove names and titles from the admin's log, whose entries outlive the erased objects."""

from __future__ import annotations

import json

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, QuerySet, Value
from django.db.models.functions import Replace

from chat.models import ApiToken, Invitation, Session, Share, User

# The text that replaces a name or title.
ERASED = "(erased)"


def scrub_session(session: Session) -> None:
    """Remove a session's title from the admin's log; its id stays."""
    _of(Session).filter(object_id=session.pk).update(object_repr=session.pk)
    if session.title:
        for words in (f" in {session.title} (", f"invitation to {session.title} ("):
            _replace(_of(Share, Invitation), "object_repr", words, words.replace(session.title, ERASED))


def scrub_user(user: User) -> None:
    """Remove a user's name from the admin's log, and the names of their API tokens; ids stay."""
    _of(User).filter(object_id=str(user.pk)).update(object_repr=str(user.pk))
    tokens = ApiToken.objects.filter(user=user).values_list("pk", flat=True)
    _of(ApiToken).filter(object_id__in=map(str, tokens)).update(object_repr=ERASED)
    _replace(_of(Share), "object_repr", f"{user} in ", f"{ERASED} in ")
    # Memberships are edited on the admin's pages of users and workspaces, so the entries of these name them in JSON.
    _replace(LogEntry.objects.all(), "change_message", json.dumps(f"{user} · ")[:-1], json.dumps(f"{ERASED} · ")[:-1])


def _of(*models: type[Model]) -> QuerySet[LogEntry]:
    kinds = [ContentType.objects.get_for_model(model).pk for model in models]
    return LogEntry.objects.filter(content_type__in=kinds)


def _replace(entries: QuerySet[LogEntry], column: str, words: str, replacement: str) -> None:
    found = entries.filter(**{f"{column}__contains": words})
    found.update(**{column: Replace(column, Value(words), Value(replacement))})
