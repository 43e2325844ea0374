"""The users who can approve calls, and conditions for calls that wait for other users' approvals."""

from __future__ import annotations

from django.db.models import CharField, Exists, OuterRef, Q, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat, Replace, StrIndex
from django.db.models.lookups import GreaterThan

from agents.approval import APPROVERS, Approvers
from chat.access import approving, roles
from chat.models import Session, SessionRole, User
from chat.queries.session_people import people_of


def approved_by(user: User) -> Q:
    """Return a condition for calls that the user has approved and that wait for others. The ids are read as text."""
    ids: Combinable = Coalesce(KT("approval__agreed"), Value(""))
    for sign, by in ((" ", ""), ("[", ","), ("]", ",")):
        ids = Replace(ids, Value(sign), Value(by))
    wanted = Concat(Value(","), Cast(Value(user.pk), CharField()), Value(","))
    return Q(GreaterThan(StrIndex(ids, wanted), 0))


def lacks_role(user: User) -> Q:
    """Return a condition for calls that wait for owners or admins of the workspace, if the user is neither."""
    lacks = Q()
    for approvers in APPROVERS:
        if not approvers:  # any editor
            continue
        has = Exists(approving(approvers).filter(user=user, workspace=OuterRef("workspace_id")))
        lacks |= Q(~has, approval__approvers=approvers)
    return lacks


def approvers_present(session: Session) -> dict[Approvers, int]:
    """Return how many users of a session can approve calls, by the role in the workspace that the calls require."""
    found = roles((user_id, session.pk) for user_id in people_of(session).values_list("pk", flat=True))
    editors = [user_id for (user_id, _session), role in found.items() if role.covers(SessionRole.EDITOR)]

    def count(approvers: Approvers) -> int:
        if not approvers:
            return len(editors)
        return approving(approvers).filter(workspace=session.workspace_id, user__in=editors).count()

    return {approvers: count(approvers) for approvers in APPROVERS}
