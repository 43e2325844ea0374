"""Names of senders: the user's display name, with the user name if another user's name looks the same."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q

from chat.models import Session, User
from chat.names import distinct


def sender_in(session: Session, user: User) -> str:
    """Return a user's name for messages and edits in a session, unique among the session's users."""
    others = User.objects.filter(Q(pk=session.owner_id) | Q(shares__session=session)).exclude(pk=user.pk)
    return distinct(user.sender, user.username, (other.sender for other in others))


def senders(people: Iterable[User]) -> dict[int, str]:
    """Return the same names for all users of a session, by user id."""
    people = list(people)
    return {
        user.pk: distinct(user.sender, user.username, (other.sender for other in people if other != user))
        for user in people
    }
