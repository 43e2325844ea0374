"""What is imported from ChatGPT: tool calls with their results, reports, formulas, and voice conversations."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from agents.messages import Json
from chat.models import Attachment, ChatMessage, User
from chat.transfer.formats import chatgpt
from chat.transfer.formats.citations import with_sources
from chat.transfer.formats.parsed import Loss, Losses
from chat.transfer.importing.files import import_file
from tests.support.files import picture
from tests.transfer.archives import chatgpt_tree, packed, pointer, text

HIDDEN: Json = {"is_visually_hidden_from_conversation": True}
PAGES = [
    {"type": "search_result", "title": "On cats", "url": "https://cats.example/a"},
    {"type": "search_result", "title": "", "url": "https://news.example/b"},
    {"type": "search_result", "title": "No page", "url": "javascript:alert(1)"},
]


def call(recipient: str, text: str = "{}") -> Json:
    return {"recipient": recipient, "content": {"content_type": "code", "text": text}}


def result(name: str, text: str = "", pages: list[Json] | None = None, **metadata: object) -> Json:
    groups = [{"type": "search_result_group", "domain": "x.example", "entries": pages}] if pages else []
    return {
        "author": {"role": "tool", "name": name},
        "content": {"content_type": "text", "parts": [text]},
        "metadata": {"search_result_groups": groups, **metadata},
    }


def calls(*said: Json) -> list[tuple[str, str, str]]:
    """Return (tool, status, result) of each call in a conversation with these messages."""
    messages = chatgpt.read(chatgpt_tree(*said)).document["messages"]
    return [
        (each["tool_name"], each["status"], each.get("result", ""))
        for each in messages
        if each.get("type") == "tool_group"
    ]


def test_an_empty_result_of_a_web_search_ends_the_call_with_the_found_pages() -> None:
    """CTX-01: the result of a web search has no text, only its pages in the metadata."""
    found = "- [On cats](https://cats.example/a)\n- [news.example](https://news.example/b)"
    assert calls(call("web.run"), result("web.run", pages=PAGES)) == [("web.run", "complete", found)]
    text = "Read https://cats.example/a"
    assert calls(call("web.run"), result("web.run", text, PAGES[:2])) == [
        ("web.run", "complete", f"{text}\n\n- [news.example](https://news.example/b)")
    ]


@pytest.mark.parametrize(
    ("recipient", "name"),
    [("web", "web.run"), ("file_search.msearch", "file_search"), ("imagegen.make_image", "imagegen"), ("a.b", "a.c")],
)
def test_results_belong_to_the_calls_of_the_same_tool(recipient: str, name: str) -> None:
    """The names of a call and its result can differ after the first dot."""
    assert calls(call(recipient), result(name, "Done")) == [(recipient, "complete", "Done")]


def test_one_result_ends_all_waiting_calls_of_its_tool() -> None:
    """Parallel calls can have one result. Further results go to the calls that have none yet."""
    waiting = [call("web.run", '{"q": 1}'), call("web.run", '{"q": 2}'), call("python")]
    ended = calls(*waiting, result("web.run", "One"))
    assert ended == [("web.run", "complete", "One"), ("web.run", "complete", ""), ("python", "interrupted", "")]
    both = calls(*waiting, result("web.run", "One"), result("web.run", "Two"), result("web", "More"))
    assert both[:2] == [("web.run", "complete", "One"), ("web.run", "complete", "Two\n\nMore")]
    later = calls(*waiting, result("web.run", "One"), call("web.run"), result("web.run", "Three"))
    assert [(status, text) for _, status, text in later] == [
        ("complete", "One"),
        ("complete", ""),
        ("interrupted", ""),
        ("complete", "Three"),
    ]
    named = calls(call("apps.find"), call("apps.open"), result("apps.open", "Opened"), result("apps.find", "Found"))
    assert named == [("apps.find", "complete", "Found"), ("apps.open", "complete", "Opened")]


def test_a_hidden_result_ends_the_call_and_its_text_is_left_out() -> None:
    """A hidden result without a call is left out, with its pages."""
    found = chatgpt.read(
        chatgpt_tree(call("bio"), result("bio", "Secret", **HIDDEN), result("web", "", PAGES, **HIDDEN))
    )
    [row] = [each for each in found.document["messages"] if each.get("type") == "tool_group"]
    assert (row["status"], row["result"]) == ("complete", "")
    assert +found.left == {Loss.HIDDEN: 1}


def formula(content: str, name: str = "math_block_widget_always_prefetch_v2") -> str:
    return f"\ue200genui\ue202{json.dumps({name: {'content': content}})}\ue201"


ENERGY, A, B, TWO_LINES = formula("E=mc^2"), formula("a"), formula("b"), formula("a_1\n\na_2")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (f"Energy: {ENERGY} done", "Energy:\n\n$$\nE=mc^2\n$$\n\ndone"),
        (A, "$$\na\n$$"),
        (f"A\n\n{TWO_LINES}\n{B} B\nC\n", "A\n\n$$\na_1\na_2\n$$\n\n$$\nb\n$$\n\nB\nC"),
        (f"1. One:\n   {A}\n   and\n2. Two", "1. One:\n\n   $$\n   a\n   $$\n\n   and\n2. Two"),
        (f"- One {A} and", "- One\n\n  $$\n  a\n  $$\n\n  and"),
        (f'See {A} by \ue200entity\ue202["x","Bo"]\ue201', "See\n\n$$\na\n$$\n\nby Bo"),
    ],
)
def test_formulas_of_widgets_become_blocks(given: str, wanted: str) -> None:
    """MSG-10: a formula is on lines of its own, in the list item that contains it."""
    left = Losses()
    assert with_sources(given, {}, left) == wanted
    assert not +left


def test_other_widgets_are_named_as_left_out() -> None:
    left = Losses()
    assert with_sources(f"A {formula('x', 'chart')}{formula('')} \ue200genui\ue202?\ue201", {}, left) == "A  "
    assert (left[Loss.UNKNOWN], left.kinds) == (3, ["chart", "math_block_widget_always_prefetch_v2", "genui"])


def widget(report: object, text: str = "", tool: str = "api_tool.call_tool") -> Json:
    state = report if isinstance(report, str) else json.dumps({"status": "x", "report_message": report})
    return result(tool, text, chatgpt_sdk={"widget_state": state})


def report(name: str, text: str, **metadata: object) -> Json:
    content = {"content_type": "text", "parts": [text]}
    return {"id": name, "author": {"role": "assistant"}, "content": content, "metadata": metadata}


def test_a_report_of_deep_research_becomes_an_answer() -> None:
    """CTX-01: of several states of a report, the last one is imported, with its sources. The call is ended."""
    marker = "\ue200cite\ue202turn1search0\ue201"
    sources = [{"matched_text": marker, "items": [{"title": "On cats", "url": "https://cats.example"}]}]
    found = chatgpt.read(
        chatgpt_tree(
            {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Cats?"]}},
            call("api_tool"),
            widget(report("r1", f"# Ca {marker}")),
            widget(report("r2", "Dogs.")),
            widget(report("r1", f"# Cats{marker}", content_references=sources, **HIDDEN)),
            {"content": {"content_type": "text", "parts": ["See above."]}},
        )
    )
    assert [(each.get("type"), each.get("text"), each.get("status")) for each in found.document["messages"][2:-1]] == [
        ("tool_group", None, "complete"),
        (None, "Dogs.", None),
        (None, "# Cats ([On cats](https://cats.example))", None),
        (None, "See above.", None),
    ]
    assert found.document["messages"][4]["role"] == "assistant"
    assert not +found.left


@pytest.mark.parametrize("state", ["", "{", "[1]", "[" * 100_000, '{"report_message": {"content": {"parts": [""]}}}'])
def test_a_widget_without_a_report_adds_nothing(state: str) -> None:
    """MSG-10: a widget that is no valid JSON, or has no report, is only a result."""
    found = chatgpt.read(chatgpt_tree(call("a"), widget(state, "Done", tool="a")))
    assert [each.get("result") for each in found.document["messages"]] == ["Done"]


def test_a_report_that_is_also_a_message_is_imported_once() -> None:
    said = {**report("r1", "# Cats"), "recipient": "all"}
    found = chatgpt.read(chatgpt_tree(call("a"), widget(report("r1", "# Cats"), tool="a"), said))
    assert [each["text"] for each in found.document["messages"] if "text" in each] == ["# Cats"]


def audio(name: str) -> Json:
    return {"content_type": "audio_asset_pointer", "asset_pointer": f"sediment://{name}", "format": "wav"}


def voice_archive() -> io.BytesIO:
    """Return a voice conversation whose recordings are larger than the limit of an import, and a picture."""
    said = {"content_type": "audio_transcription", "text": "What is it?", "direction": "in"}
    both = {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": audio("file_b")}
    attached = [{"id": "file_a", "name": "a.wav", "mime_type": "audio/wav"}, {"id": "file_d", "name": "song.mp3"}]
    user = {"role": "user"}
    talk = chatgpt_tree(
        {"author": user, "content": text(said, audio("file_a")), "metadata": {"attachments": attached}},
        {"author": user, "content": text(both)},
        {"content": text({"content_type": "audio_transcription", "text": "A cat."}, pointer("sediment://file_e"))},
        {"author": user, "content": text(pointer("sediment://file_c"), "And this?")},
    )
    recordings = {f"audio/file_{name}.wav": bytes(600_000) for name in "abe"}
    return packed({"conversations.json": json.dumps([talk]), **recordings, "file_c.png": picture()})


@pytest.mark.usefixtures("own_files")
@pytest.mark.django_db
def test_recordings_are_counted_and_not_read(ana: User, settings: Any) -> None:
    """The transcript stays, and pictures of other conversations do not compete with recordings for the limits."""
    settings.MAX_IMPORT_MB = 1
    [made] = import_file(owner=ana, file=voice_archive()).imported
    said = ChatMessage.objects.filter(session=made.session, type="text").order_by("sequence")
    assert [each.text for each in said] == [
        "What is it?\n\n[File song.mp3: left out]",
        "[Recording: left out]",
        "A cat.",
        "And this?",
    ]
    assert made.notes == ["4 recordings were left out, because sessions cannot contain audio. Transcripts are kept."]
    assert Attachment.objects.get(session=made.session).name == "file_c.png"
