"""Guests of a workspace: members for as long as a session of it is shared with them."""

from __future__ import annotations

from collections.abc import Iterable

from chat.models import Membership, Share


def end_memberships(*, workspace_id: int, user_ids: Iterable[int]) -> None:
    """End the membership of those of these users who are guests and have no share in the workspace any more."""
    ids = set(user_ids)
    still_in = Share.objects.filter(session__workspace=workspace_id, user__in=ids).values("user")
    guests = Membership.objects.filter(workspace=workspace_id, user__in=ids, role=Membership.Role.GUEST)
    for membership in guests.exclude(user__in=still_in):
        membership.delete()
