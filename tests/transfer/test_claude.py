"""What is imported from Claude: manifests of large exports, hidden blocks, and files."""

from __future__ import annotations

import pytest

from agents.messages import Json
from chat.errors import ServiceError
from chat.models import User
from chat.transfer.importing.files import import_file, list_conversations
from tests.transfer import samples
from tests.transfer.test_foreign import file_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "manifest",
    [
        {"version": 1, "files": [{"url": "https://files.example/x/conversations-000.zip?signature=a"}]},
        {"conversations": ["https://files.example/conversations-000.zip", "conversations-001.zip"]},
        {"links": {"conversations-12.zip": "https://files.example/1"}},
    ],
)
def test_a_manifest_is_answered_with_what_to_import_instead(ana: User, manifest: Json) -> None:
    """A large export is a list of links. Parley does not open them."""
    words = "Open the link to conversations-000.zip in it"
    with pytest.raises(ServiceError, match=words) as listed:
        list_conversations(file_of(manifest))
    assert listed.value.code == "nothing_known"
    with pytest.raises(ServiceError, match=words):
        import_file(owner=ana, file=file_of(manifest))


def test_a_conversation_about_a_manifest_is_no_manifest() -> None:
    talk = samples.claude()
    talk["chat_messages"][2]["text"] = "conversations-000.zip"
    assert len(list_conversations(file_of(talk)).conversations) == 1
    with pytest.raises(ServiceError, match="No conversations found"):
        list_conversations(file_of(["conversations-000.zip"]))
