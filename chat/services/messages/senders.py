"""Names of senders: the user's display name, with the user name if another user's name looks the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.db.models import Q

from chat.models import Membership, Session, Share, User
from chat.names import distinct, look


def sender_in(session: Session, user: User) -> str:
    """Return a user's name for messages and edits in a session, unique among the session's users."""
    inside = Q(pk=session.owner_id) | Q(pk__in=Share.objects.filter(session=session).values("user"))
    if session.workspace_role:
        inside |= Q(pk__in=Membership.objects.filter(workspace=session.workspace_id).values("user"))
    others = User.objects.filter(inside).exclude(pk=user.pk)
    return distinct(user.sender, user.username, (other.sender for other in others))


def senders(people: Iterable[User]) -> dict[int, str]:
    """Return the same names for all users of a session, by user id."""
    people = list(people)
    looks = Counter(look(user.sender) for user in people)
    return {
        user.pk: distinct(user.sender, user.username, [user.sender] if looks[look(user.sender)] > 1 else [])
        for user in people
    }
