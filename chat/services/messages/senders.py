"""Under which name a person speaks in a session: their own, with their user name where another's looks the same."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q

from chat.models import Session, User
from chat.names import distinct


def sender_in(session: Session, user: User) -> str:
    """Return the name for a person's messages and edits in a session, unique among the people who are in it."""
    others = User.objects.filter(Q(pk=session.owner_id) | Q(shares__session=session)).exclude(pk=user.pk)
    return distinct(user.sender, user.username, (other.sender for other in others))


def senders(people: Iterable[User]) -> dict[int, str]:
    """Return the same names for all people of a session at once, by user id."""
    people = list(people)
    return {
        user.pk: distinct(user.sender, user.username, (other.sender for other in people if other != user))
        for user in people
    }
