"""Importing the conversations of other programs."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

import pytest

from agents.messages import Json
from chat.errors import ServiceError
from chat.models import ChatMessage, Session, User
from chat.transfer.formats import chatgpt, claude
from chat.transfer.formats.parsed import Loss
from chat.transfer.importing.files import ImportResult, import_file, list_conversations
from tests.support.rest import check_rest
from tests.transfer import samples
from tests.transfer.archives import chatgpt_tree, packed

Row = tuple[str, str, str, str]


def shown(messages: list[Json]) -> list[Row]:
    """Return (type, role, text or arguments, result) of each message of a document."""
    return [
        (
            each.get("type", "text"),
            each.get("role", ""),
            each.get("text", "") or (json.dumps(each["arguments"]) if "arguments" in each else ""),
            each.get("result", ""),
        )
        for each in messages
    ]


def file_of(value: object) -> io.BytesIO:
    return io.BytesIO(json.dumps(value).encode())


def imported(value: object, owner: User, **options: Any) -> ImportResult:
    return import_file(owner=owner, file=file_of(value), **options)


def test_chatgpt_s_path_becomes_turns() -> None:
    """CTX-01, MSG-12: the shown path becomes turns, with calls and results, and placeholders for missing content."""
    found = chatgpt.read(samples.chatgpt())
    assert shown(found.document["messages"]) == [
        ("turn_start", "", "", ""),
        (
            "text",
            "user",
            "[Image 640×480: not in the export]\n\nHow many days?\ufffd\n\n[File plan.pdf: not in the export]",
            "",
        ),
        ("reasoning", "assistant", "**Counting**\n\nDays and nights.", ""),
        ("tool_group", "assistant", '{"input": "print(3 + 4)"}', "7"),
        ("text", "assistant", "**Seven** days.", ""),
        ("turn_done", "", "", ""),
    ]
    assert +found.left == {Loss.BRANCHES: 1, Loss.FILES: 2}
    responses = [each["response_id"] for each in found.document["messages"] if "response_id" in each]
    assert responses[0] == responses[1] != responses[2]
    assert {each.get("model") for each in found.document["messages"][2:5]} == {"gpt-5"}


def test_claude_s_blocks_become_turns() -> None:
    """CTX-01: blocks keep their order, and pasted text becomes a file again."""
    found = claude.read(samples.claude())
    assert shown(found.document["messages"]) == [
        ("turn_start", "", "", ""),
        ("text", "user", "Find a name.\n\n[File street.jpg: not in the export]", ""),
        ("reasoning", "assistant", "By the sea.", ""),
        ("tool_group", "assistant", '{"query": "caf\\u00e9 names"}', "Tide, Ebb\n\n[Image: not in the export]"),
        ("text", "assistant", "How about **Ebb**?", ""),
        ("turn_done", "", "", ""),
        ("turn_start", "", "", ""),
        ("text", "user", "Lovely!", ""),
        ("turn_done", "", "", ""),
    ]
    [file] = found.document["messages"][1]["attachments"]
    assert (file["name"], base64.b64decode(file["data"]).decode()) == ("brief.txt", "A small café")
    assert +found.left == {Loss.FILES: 2, Loss.UNKNOWN: 1}


def test_claude_s_last_branch_is_followed() -> None:
    """If messages name their predecessors, the path to the last message is used."""
    talk = samples.claude()
    first, second, third = talk["chat_messages"]
    first["parent_message_uuid"] = "00000000"
    second["parent_message_uuid"] = third["parent_message_uuid"] = "a"
    found = claude.read(talk)
    assert [each["text"] for each in found.document["messages"] if each.get("role") == "user"] == [
        "Find a name.\n\n[File street.jpg: not in the export]",
        "Lovely!",
    ]
    assert found.left[Loss.BRANCHES] == 1


def test_conversations_become_sessions_of_the_one_who_brings_them(own_files: None, ana: User) -> None:
    """RUN-01, MSG-04, LIVE-06: the sessions are private, ready to continue, and have the importer as their user."""
    outcome = imported([samples.chatgpt(), samples.claude()], ana)
    assert [(each.session.title, each.messages) for each in outcome.imported] == [
        ("Trip to Kyoto", 4),
        ("Naming a café", 5),
    ]
    for each in outcome.imported:
        session = Session.objects.get(pk=each.session.pk)
        assert (session.owner, session.shares.count(), session.run.state) == (ana, 0, "idle")
        assert session.model
        said = ChatMessage.objects.filter(session=session, role="user")
        assert set(said.values_list("user", "sender")) == {(ana.pk, "Ana")}
        check_rest(session)
    assert outcome.imported[1].session.created_at.isoformat() == "2025-11-02T09:00:00+00:00"
    assert outcome.imported[0].notes == [
        "1 message of another branch was left out.",
        "2 files or images are not in the export. Their places are marked.",
    ]


def test_zip_is_read_and_some_are_chosen(own_files: None, ana: User) -> None:
    """Only the chosen conversations are imported, and other entries are skipped."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("user.json", '{"email": "a@example.org"}')
        archive.writestr(
            "export/conversations-000.json", json.dumps([samples.chatgpt("One"), 7, samples.chatgpt("Two")])
        )
        archive.writestr("export/conversations-001.json", json.dumps([samples.claude("Three")]))
    listed = list_conversations(packed).conversations
    assert [(each.index, each.title, each.count) for each in listed] == [(0, "One", 4), (2, "Two", 4), (3, "Three", 5)]
    outcome = import_file(owner=ana, file=packed, chosen=[2])
    assert [each.session.title for each in outcome.imported] == ["Two"]


def test_conversations_without_messages_are_skipped(ana: User) -> None:
    """The other conversations keep their numbers. Parley's own empty sessions are imported."""
    own = {"format": "parley.session", "version": 1, "session": {"title": "Own"}, "messages": []}
    empty: list[Json] = [{"name": "", "chat_messages": []}, {"title": "Old", "mapping": {}}]
    talks = [*empty, samples.chatgpt("One"), empty[0], own]
    found = list_conversations(file_of(talks))
    assert [(each.index, each.title) for each in found.conversations] == [(2, "One"), (4, "Own")]
    assert not found.problems
    assert [each.session.title for each in imported(talks, ana).imported] == ["One", "Own"]
    [made] = imported(talks, ana, chosen=[4]).imported
    assert made.session.title == "Own (imported)"
    with pytest.raises(ServiceError) as refused:
        list_conversations(file_of(empty))
    assert refused.value.code == "nothing_known"


def test_a_conversation_of_unknown_parts_only_is_named_as_not_imported(ana: User) -> None:
    """MSG-10: a conversation is not skipped silently if it has messages that cannot be read."""
    talk = chatgpt_tree({"content": {"content_type": "hologram", "light": 1}})
    outcome = imported([talk, samples.chatgpt("One")], ana)
    assert outcome.problems == ["“Cats” was not imported: it has no messages in a known format."]
    assert [each.session.title for each in outcome.imported] == ["One"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "nothing_known"),
        (b"hello", "unreadable"),
        (b"[1, 2]", "nothing_known"),
        (b'{"mapping": []}', "nothing_known"),
        (b'[{"mapping": {}}', "unreadable"),
        (b'{"mapping": {}} x', "unreadable"),
        (b"\xff\xfe\x00", "unreadable"),
        (b"PK\x03\x04 no archive", "unreadable"),
        (b"[" * 100_000, "unreadable"),
        (b'{"a":' * 100_000, "unreadable"),
        (b'{"format": "parley.session", "n": NaN}', "unreadable"),
        (b'{"format": "parley.session", "session": ' + b"9" * 5000 + b"}", "unreadable"),
    ],
)
def test_what_is_no_file_of_conversations_is_refused(data: bytes, code: str) -> None:
    """MSG-10, MSG-12: any other file is refused with an error."""
    with pytest.raises(ServiceError) as refused:
        list_conversations(io.BytesIO(data))
    assert refused.value.code == code


def test_archive_that_broke_off_on_its_way_is_refused() -> None:
    """MSG-12: a damaged archive is refused, because its contents cannot be unpacked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([samples.chatgpt()]))
    data = bytearray(packed.getvalue())
    data[60:90] = b"\xff" * 30
    with pytest.raises(ServiceError) as refused:
        list_conversations(io.BytesIO(bytes(data)))
    assert refused.value.code == "unreadable"


MACOS = {"__MACOSX/talks/._a.json": b"\0\5\x16\7", "talks/._b.json": b"\0\5\x16\7", "__MACOSX/c.json": b"?"}


def test_files_that_macos_adds_to_an_archive_are_ignored(ana: User) -> None:
    """The Finder adds a file with attributes for each file, under nearly the same name."""
    talks = packed({**MACOS, "talks/a.json": json.dumps(samples.chatgpt("One"))})
    outcome = import_file(owner=ana, file=talks)
    assert ([each.session.title for each in outcome.imported], outcome.problems) == (["One"], [])


def test_an_unreadable_file_of_an_archive_is_skipped_and_named(ana: User) -> None:
    """MSG-12: the other files are imported, and their conversations keep their numbers in the list."""
    broken = f'[{json.dumps(samples.claude("Before"))}, {{"mapping": nonsense}}, {{"mapping": {{}}}}]'
    talks: dict[str, bytes | str] = {
        "a.json": broken,
        "b.json": b"\0\5",
        "c.json": json.dumps([samples.chatgpt("One"), samples.chatgpt("Two")]),
    }
    found = list_conversations(packed(talks))
    assert [(each.index, each.title) for each in found.conversations] == [(0, "Before"), (3, "One"), (4, "Two")]
    reason = "was not imported: the file is damaged, or not JSON."
    assert found.problems == [f"“a.json” {reason}", f"“b.json” {reason}"]
    for chosen, titles in (([3], ["One"]), ([0, 4], ["Before", "Two"]), (None, ["Before", "One", "Two"])):
        outcome = import_file(owner=ana, file=packed(talks), chosen=chosen)
        assert [each.session.title.removesuffix(" (imported)") for each in outcome.imported] == titles
        assert outcome.problems == ([] if chosen else found.problems)


@pytest.mark.parametrize(
    "talks", [{"a.json": "?", "b.json": "["}, {"conversations.json": "?", "b.json": "{}"}, {"a.json": b"\0\5"}]
)
def test_an_archive_is_refused_if_no_file_or_not_the_main_one_is_readable(talks: dict[str, bytes | str]) -> None:
    with pytest.raises(ServiceError) as refused:
        list_conversations(packed(talks))
    assert refused.value.code == "unreadable"


def test_packed_file_that_is_too_large_is_refused(settings: Any) -> None:
    """The limit also applies to the unpacked size."""
    settings.MAX_IMPORT_MB = 1
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * 2_000_000)
    with pytest.raises(ServiceError) as refused:
        list_conversations(packed)
    assert refused.value.code == "too_large"


ODD_AND_EMPTY: list[Json] = [
    {"mapping": {"a": None}, "current_node": "a"},
    {"mapping": {"a": {"message": {"author": 1, "content": [], "metadata": 2}, "parent": "a"}}, "current_node": ["a"]},
    {"mapping": {"a": {"parent": "b", "message": {"content": {"parts": [{}, 1, None]}}}, "b": {"parent": "a"}}},
    {"mapping": {"a": {"message": {"content": {"content_type": [], "parts": ["Hi"]}}}}, "current_node": "a"},
    {"mapping": {}, "title": {"x": 1}, "create_time": 1e300, "update_time": "soon"},
    {"chat_messages": [{"sender": "human", "content": 7}]},
]
CYCLE: Json = {
    "a": {"parent": "b", "message": {"author": {"role": "user"}, "content": {"parts": [{}, 1, None, "Hi"]}}},
    "b": {"parent": "a"},
}
ODD: list[Json] = [
    {"mapping": CYCLE, "title": {"x": 1}, "create_time": 1e300, "update_time": "soon", "current_node": "a"},
    {
        "chat_messages": [None, {"sender": 5}, {"sender": "human", "text": "Hi", "content": [3], "files": "x"}],
        "name": 4,
    },
    {"chat_messages": [{"sender": "assistant", "content": [{"type": "tool_result", "content": {"a": 1}}]}]},
    {"chat_messages": [{"uuid": "a", "parent_message_uuid": "a", "sender": "human", "text": "\ud800"}]},
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.both_databases
def test_odd_conversations_come_in_as_far_as_they_can(ana: User, odd: Json) -> None:
    """MSG-10: conversations with missing or invalid fields, cycles or broken Unicode are imported as far as
    possible."""
    made = import_file(owner=ana, file=io.BytesIO(json.dumps(odd).encode()))
    check_rest(made.imported[0].session)


@pytest.mark.parametrize("odd", ODD_AND_EMPTY)
def test_odd_conversations_without_readable_messages_do_not_stop_the_others(ana: User, odd: Json) -> None:
    """MSG-10: nothing is imported of them, and the next conversation is imported."""
    outcome = imported([odd, samples.chatgpt("Good")], ana)
    assert [each.session.title for each in outcome.imported] == ["Good"]
