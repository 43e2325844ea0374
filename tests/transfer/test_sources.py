"""What is imported from each program: files in archives, citations, unknown kinds, and the owners."""

from __future__ import annotations

import io
import json

import pytest

from agents.messages import Json
from chat.models import Attachment, ChatMessage, User, UserSessionState
from chat.transfer.formats import chatgpt, claude, librechat, open_webui
from chat.transfer.formats.citations import cited_text, with_sources
from chat.transfer.formats.parsed import Loss, Losses
from chat.transfer.importing.files import import_file, list_conversations
from tests.transfer import archives, samples
from tests.transfer.archives import chatgpt_tree, packed, text
from tests.transfer.test_foreign import file_of, imported, shown

pytestmark = pytest.mark.usefixtures("own_files")


def test_files_of_an_archive_come_along(ana: User) -> None:
    """CTX-01: files of users and tools are found by ids and names and keep their names, and missing ones are named."""
    outcome = import_file(owner=ana, file=archives.chatgpt_archive())
    [made] = outcome.imported
    kept = Attachment.objects.filter(session=made.session).order_by("message__sequence", "position")
    assert [(each.name, each.kind, each.message.role if each.message else "") for each in kept] == [
        ("cat.png", "image", "user"),
        ("note.txt", "text", "user"),
        ("made.png", "image", "assistant"),
        ("file-plot", "image", "assistant"),
    ]
    said = ChatMessage.objects.filter(session=made.session, role="user").get()
    assert said.text == "What is it?\n\n[File gone.pdf: not in the export]"
    assert made.notes == ["1 file or image is not in the export. Its place is marked."]
    assert outcome.problems == ["“Corrupted entry” was not imported: it has no messages in a known format."]
    assert (made.session.status, made.session.archived_at is not None) == ("archived", True)
    assert UserSessionState.objects.get(session=made.session, user=ana).pinned_at is not None


def test_an_archive_in_an_archive_is_read(ana: User) -> None:
    """Nested archives, as from OpenAI's privacy portal, are read, unless they contain other files."""
    portal = packed(
        {
            "report.html": "<p>",
            "User Online Activity/Conversations__x.zip": archives.chatgpt_archive().getvalue(),
            "Other/pictures.zip": packed({"a.png": b"x"}).getvalue(),
        }
    )
    assert [(each.title, each.count, each.size > 100) for each in list_conversations(portal).conversations] == [
        ("Cats", 6, True)
    ]
    [made] = import_file(owner=ana, file=portal).imported
    assert Attachment.objects.filter(session=made.session).count() == 4


@pytest.mark.parametrize(
    ("given", "metadata", "wanted", "lost"),
    [
        (
            "A cat. \ue200cite\ue202turn0search1\ue201 Yes.",
            {
                "content_references": [
                    {
                        "matched_text": "\ue200cite\ue202turn0search1\ue201",
                        "type": "grouped_webpages",
                        "items": [{"title": "On [cats]", "url": "https://c.example/a_(b)"}],
                    },
                    {"matched_text": " ", "type": "sources_footnote", "sources": [{"url": "https://d.example"}]},
                ]
            },
            "A cat. ([On cats](https://c.example/a_%28b%29)) Yes.\n\n- [d.example](https://d.example)",
            0,
        ),
        (
            "See【3:0†source】.",
            {"citations": [{"start_ix": 3, "end_ix": 14, "metadata": {"title": "T", "url": "https://t.example"}}]},
            "See ([T](https://t.example)).",
            0,
        ),
        (
            "Cats \ue200cite\ue202turn2news1\ue202turn2search0\ue201 and \ue200cite\ue202turn3search0\ue201.",
            {
                "content_references": [],
                "search_result_groups": [
                    {
                        "entries": [
                            {
                                "title": "News",
                                "url": "https://n.example",
                                "ref_id": {"turn_index": 2, "ref_type": "news", "ref_index": 1},
                            },
                            {"title": "Other", "url": "https://o.example", "ref_id": None},
                        ]
                    },
                    "?",
                ],
            },
            "Cats ([News](https://n.example)) and .",
            1,
        ),
        ("See 【3:0†report.pdf】.", {}, "See (report.pdf).", 0),
        (
            'Buy \ue200products\ue202{"selections":[["turn9product0","Alpha One"],["turn9product1","Beta"]]}\ue201.',
            {
                "content_references": [
                    {
                        "matched_text": '\ue200products\ue202{"selections":[["turn9product0","Alpha One"],'
                        '["turn9product1","Beta"]]}\ue201',
                        "products": [{"title": "Alpha One 2"}, {"title": "Beta", "url": "https://b.example"}, {}],
                    }
                ]
            },
            "Buy Alpha One 2, [Beta](https://b.example).",
            0,
        ),
        ('Buy \ue200products\ue202{"selections":[["turn9product0","Alpha One"]]}\ue201', {}, "Buy Alpha One", 0),
        (
            "Buy \ue200products\ue202{}\ue201!",
            {"content_references": [{"matched_text": "\ue200products\ue202{}\ue201", "products": [{"id": 1}]}]},
            "Buy !",
            1,
        ),
        (
            "Some \ue200hint\ue202x\ue201text",
            {"content_references": [{"matched_text": "\ue200hint\ue202x\ue201", "type": "hidden"}]},
            "Some text",
            0,
        ),
        ("Gone \ue200cite\ue202turn0search9\ue201 and 【1†source】.", {}, "Gone  and .", 2),
        ('By \ue200entity\ue202["company","Acme","x"]\ue201.', {}, "By Acme.", 0),
        (
            "No \ue200cite\ue202a\ue201!",
            {"content_references": [{"matched_text": "\ue200cite\ue202a\ue201", "url": "javascript:alert(1)"}]},
            "No !",
            1,
        ),
    ],
)
def test_citations_become_links(given: str, metadata: Json, wanted: str, lost: int) -> None:
    """MSG-10: citations are found by their markers and positions. Those without a source are removed and counted."""
    left = Losses()
    assert with_sources(given, metadata, left) == wanted
    assert left[Loss.CITATIONS] == lost
    found = chatgpt.read(chatgpt_tree({"content": text(given), "metadata": metadata}))
    assert found.document["messages"][0]["text"] == wanted


def test_claude_s_citations_follow_the_text_that_they_support() -> None:
    cited = [
        {"end_index": 4, "details": {"type": "web_search_citation", "url": "https://a.example"}},
        {"end_index": 99, "url": "https://b.example", "title": "B"},
    ]
    wanted = "Cats ([a.example](https://a.example)) purr. ([B](https://b.example))"
    assert cited_text("Cats purr.", cited) == wanted


def test_kinds_that_are_not_known_are_named(ana: User) -> None:
    """MSG-10: unknown kinds of texts, parts and blocks are named, and known ones keep their texts."""
    talk = chatgpt_tree(
        {"author": {"role": "user"}, "content": text("Hi")},
        {
            "author": {"role": "tool", "name": "t"},
            "content": {"content_type": "citable_code_output", "output_str": "L0"},
        },
        {"content": {"content_type": "super_widget", "widget": {"a": 1}}},
        {"content": text({"content_type": "smell"}, "There.")},
    )
    [made] = imported([talk], ana).imported
    assert made.notes == ["2 parts of unknown kinds were left out: super_widget, smell."]
    assert ChatMessage.objects.get(session=made.session, type="tool_group").result == "L0"


def test_open_webui_s_chats_become_sessions(ana: User) -> None:
    """CTX-01: typed items, blocks of HTML, files, sources, the prompt and the shown branch are imported."""
    found = open_webui.read(archives.open_webui())
    assert shown(found.document["messages"]) == [
        ("turn_start", "", "", ""),
        ("text", "user", "Weather?\n\n[File image: not in the export]", ""),
        ("reasoning", "assistant", "Hm", ""),
        ("tool_group", "assistant", '{"city": "Paris"}', "18C"),
        ("text", "assistant", "Mild.\n\n- [Met](https://met.example)", ""),
        ("turn_done", "", "", ""),
        ("turn_start", "", "", ""),
        ("text", "user", "6 × 7?", ""),
        ("reasoning", "assistant", "6 < 7", ""),
        ("tool_group", "assistant", '{"a": 1}', "42"),
        ("text", "assistant", "It is 42.", ""),
        ("error", "", "Too late.", ""),
        ("turn_done", "", "", ""),
    ]
    assert +found.left == {Loss.BRANCHES: 1, Loss.FILES: 1, Loss.UNKNOWN: 1}
    [made] = imported([archives.open_webui()], ana).imported
    assert (made.session.title, made.session.system_prompt) == ("Paris", "Be brief.")
    assert Attachment.objects.get(session=made.session).name == "map.txt"
    assert UserSessionState.objects.get(session=made.session).pinned_at is not None


@pytest.mark.parametrize("recursive", [True, False])
def test_librechat_s_conversations_become_sessions(ana: User, recursive: bool) -> None:
    """CTX-01: both forms are imported, with parts, calls and citations, and the branch with the last message."""
    found = librechat.read(archives.librechat(recursive=recursive))
    assert shown(found.document["messages"]) == [
        ("turn_start", "", "", ""),
        ("text", "user", "What do cats do?\n\n[File cat.png: not in the export]", ""),
        ("reasoning", "assistant", "Hm", ""),
        ("tool_group", "assistant", '{"q": "cats"}', "Found"),
        ("text", "assistant", "Cats purr ([On cats](https://cats.example/a)) and.", ""),
        ("turn_done", "", "", ""),
    ]
    assert +found.left == {Loss.BRANCHES: 1, Loss.FILES: 1, Loss.CITATIONS: 1, Loss.UNKNOWN: 1}
    [made] = imported(archives.librechat(recursive=recursive), ana).imported
    assert (made.session.title, made.session.system_prompt) == ("Cats", "Be brief.")
    assert made.session.created_at.isoformat() == "2024-04-09T14:32:05.230000+00:00"


def test_lists_in_objects_lines_and_older_forms_are_read() -> None:
    """The forms are `{"conversations": […]}`, one document per line, and messages with a single text."""
    both = [samples.chatgpt("One"), samples.chatgpt("Two")]
    lines = "\n".join(map(json.dumps, both)).encode()
    for data in (file_of({"version": 1, "conversations": both}), io.BytesIO(lines)):
        assert [each.title for each in list_conversations(data).conversations] == ["One", "Two"]
    older = {"name": "", "summary": "About cats", "messages": [{"sender": "assistant", "text": "Hi", "files": []}]}
    [found] = list_conversations(file_of([older])).conversations
    assert (found.title, found.source, found.count) == ("About cats", "claude", 1)


def test_arguments_that_are_too_deep_are_kept_as_text(ana: User) -> None:
    """MSG-10: arguments that are too deep are kept as text, and characters that the database refuses are replaced."""
    deep = '{"a":' * 150 + "1" + "}" * 150
    talk = chatgpt_tree(
        {"recipient": "api", "content": {"content_type": "code", "text": deep}},
        {"recipient": "api", "content": {"content_type": "code", "text": '{"b": "\\u0000"}'}},
    )
    [made] = imported([talk], ana).imported
    given = ChatMessage.objects.filter(session=made.session, type="tool_group").order_by("sequence")
    assert [each.arguments for each in given] == [{"input": deep}, {"b": "\ufffd"}]


def test_times_do_not_run_backwards() -> None:
    """A block without a time gets the time of the block before it."""
    talk = samples.claude()
    talk["chat_messages"][1]["content"][0]["start_timestamp"] = "2025-11-02T09:04:00Z"
    times = [each["timestamp"] for each in claude.read(talk).document["messages"]]
    assert times == sorted(times)


def test_reasons_are_said_in_the_reader_s_language(ana: User) -> None:
    talk = {"format": "parley.session", "version": 1, "session": {"title": "Plan"}, "messages": [{"role": "king"}]}
    good = chatgpt_tree({"content": text("Hi")})
    outcome = imported([talk, good], ana)
    assert outcome.problems == ["“Plan” was not imported: messages.0.role: its value is unknown."]
