"""Give sessions in which agents work for another session the users of that session."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.bus.events import AccessChanged
from chat.errors import ServiceError
from chat.models import Session, Share
from chat.queries import subsessions
from chat.services.transaction import notify_session_lists, publish_on_commit


def copy_people_below(session_id: str) -> None:
    """Copy a session's shares and workspace role to the sessions below it, in the caller's transaction."""
    below = subsessions.below(session_id)
    if not below:
        return
    people = dict(Share.objects.filter(session=session_id).values_list("user", "role"))
    shares = list(Share.objects.filter(session__in=below))
    left = [share for share in shares if share.user_id not in people]
    known = {(share.session_id, share.user_id) for share in shares}
    pairs = [(child, user_id) for child in below for user_id in people]
    new = [
        Share(session_id=child, user_id=user, role=people[user]) for child, user in pairs if (child, user) not in known
    ]
    changed = [share for share in shares if share.role != people.get(share.user_id, share.role)]
    if left:
        Share.objects.filter(pk__in=[share.pk for share in left]).delete()
    Share.objects.bulk_create(new)
    role = Session.objects.values_list("workspace_role", flat=True).get(pk=session_id)
    opened = list(Session.objects.filter(pk__in=below).exclude(workspace_role=role).values_list("pk", flat=True))
    Session.objects.filter(pk__in=opened).update(workspace_role=role)
    for share in changed:  # one by one, because each save sends the signal that checks the user's open pages
        share.role = people[share.user_id]
        share.save(update_fields=["role"])
    touched = dict.fromkeys([*(share.session_id for share in (*left, *new, *changed)), *opened])
    for child in touched:
        publish_on_commit(child, [AccessChanged()])
    if touched:
        notify_session_lists(sessions=list(touched), users={share.user_id for share in left})


def require_own_people(session: Session) -> None:
    """Raise ServiceError if a session has the users of the session that started it."""
    if session.caller_session_id:
        words = _(
            "This session is shared with the same people as the session that started it. Share that session instead."
        )
        raise ServiceError("follows_session", words)
