"""What is imported from Claude: manifests of large exports, hidden blocks, and files."""

from __future__ import annotations

import pytest

from agents.messages import Json
from chat.errors import ServiceError
from chat.models import User
from chat.transfer.formats import claude
from chat.transfer.formats.parsed import Loss
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


def said(*blocks: Json, **more: object) -> Json:
    return {"chat_messages": [{"sender": "human", "text": "", "content": list(blocks), **more}]}


def test_files_that_only_blocks_name_are_named_as_missing() -> None:
    """MSG-10: a block whose file is among the message's files is no further file."""
    found = claude.read(
        said(
            {"type": "text", "text": "Look"},
            {"type": "image", "file_uuid": "1"},
            {"type": "image", "file_uuid": "2"},
            {"type": "document", "file_uuid": "3", "file_name": "plan.pdf"},
            {"type": "image"},
            files=[{"file_uuid": "1", "file_name": "cat.png"}],
        )
    )
    assert found.document["messages"][1]["text"].split("\n\n") == [
        "Look",
        "[File cat.png: not in the export]",
        "[Image: not in the export]",
        "[Document plan.pdf: not in the export]",
        "[Image: not in the export]",
    ]
    assert +found.left == {Loss.FILES: 4}


def test_an_image_without_text_is_a_message() -> None:
    found = claude.read(said({"type": "image", "file_uuid": "2"}))
    assert found.document["messages"][1]["text"] == "[Image: not in the export]"


def test_hidden_blocks_are_no_loss() -> None:
    """Claude shows neither injected prompts nor summaries of thoughts."""
    hidden: list[Json] = [{"type": "injected_prompt_block", "prompt": "Date"}, {"type": "summaries", "summaries": []}]
    talk = said({"type": "text", "text": "Hi"}, *hidden)
    talk["chat_messages"].append({"sender": "assistant", "content": [*hidden, {"type": "text", "text": "Ho"}]})
    found = claude.read(talk)
    assert [each["text"] for each in found.document["messages"] if each.get("role")] == ["Hi", "Ho"]
    assert not +found.left


def test_a_result_without_an_id_belongs_to_the_last_call() -> None:
    """A call whose result is missing stays interrupted, even if the same tool is called again."""
    use: Json = {"type": "tool_use", "name": "search", "input": {}}
    blocks = [use, use, {"type": "tool_result", "name": "search", "content": "Found"}]
    found = claude.read({"chat_messages": [{"sender": "assistant", "content": blocks}]})
    calls = [(each["status"], each.get("result")) for each in found.document["messages"]]
    assert calls == [("interrupted", None), ("complete", "Found")]
