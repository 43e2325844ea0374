"""Notes over the API."""

from __future__ import annotations

import pytest

from chat.models import Membership, User, Workspace
from tests.api.asking import Asker

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("whose", ["me", "workspaces"])
def test_change_of_a_note_is_refused_if_its_text_has_changed(
    asker: Asker, ana: User, workspace: Workspace, whose: str
) -> None:
    """CTX-08: with `seen_text`, a change does not overwrite a newer text, and a proposal is accepted as it was read."""
    Membership.objects.update(role=Membership.Role.OWNER)
    notes = "/api/me/notes" if whose == "me" else f"/api/workspaces/{workspace.pk}/notes"
    note = f"{notes}/{asker.post(notes, {'text': 'First'}).json()['id']}"
    assert asker.patch(note, {"text": "Second", "seen_text": "First"}).json()["text"] == "Second"
    refused = asker.patch(note, {"text": "Third", "seen_text": "First"})
    assert (refused.status_code, refused.json()["code"], refused.json()["current"]) == (409, "stale", "Second")
    if whose == "workspaces":
        assert asker.patch(note, {"accepted": True, "seen_text": "First"}).status_code == 409
        changed = asker.patch(note, {"text": "Third", "accepted": True, "seen_text": "Second"}).json()
        assert (changed["text"], changed["accepted"]) == ("Third", True)
    assert asker.patch(note, {"text": "Last"}).json()["text"] == "Last"
