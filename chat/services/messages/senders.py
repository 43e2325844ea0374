"""Names of senders: the user's display name, with the user name if another user's name looks the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.db.models import Q, QuerySet

from chat.models import Membership, Session, Share, User
from chat.names import distinct, lookalike_key
from chat.overrides.composed_queries import Composed


def sender_in(session: Session, user: User) -> str:
    """Return a user's name for messages and edits in a session, unique among the session's users."""
    workspace = (session.workspace_id,) if session.workspace_role else ()
    others = _OTHERS.read(user.pk, session.pk, session.owner_id, *workspace)
    return distinct(user.sender, user.username, (other.sender for other in others))


def _others(user_id: int, session_id: str, owner_id: int, workspace_id: int | None = None) -> QuerySet[User]:
    """Return the other users of a session. `workspace_id` is set if the session is open to its workspace."""
    inside = Q(pk=owner_id) | Q(pk__in=Share.objects.filter(session=session_id).values("user"))
    if workspace_id is not None:
        inside |= Q(pk__in=Membership.objects.filter(workspace=workspace_id).values("user"))
    return User.objects.filter(inside).exclude(pk=user_id)


_OTHERS = Composed(_others)


def senders(people: Iterable[User]) -> dict[int, str]:
    """Return the names of all users of a session, unique among them, by user id."""
    people = list(people)
    keys = Counter(lookalike_key(user.sender) for user in people)
    return {
        user.pk: distinct(user.sender, user.username, [user.sender] if keys[lookalike_key(user.sender)] > 1 else [])
        for user in people
    }
