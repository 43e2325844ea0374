"""The roles of members in a workspace, and the codes with which services refuse actions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chat.errors import ServiceError
from chat.models import Membership, User, Workspace


def role_of(user: User, workspace: Workspace) -> str | None:
    return Membership.objects.filter(user=user, workspace=workspace).values_list("role", flat=True).first()


def code_of(action: Callable[[], object]) -> str:
    """Return the code of the error with which an action is refused."""
    with pytest.raises(ServiceError) as refused:
        action()
    return refused.value.code
