"""Exports in the formats of other programs, with everything that these can contain: archives, trees, typed items.

They follow the samples of LibreChat's import, https://github.com/danny-avila/LibreChat (api/server/utils/import), and
the sources of the programs. Nothing is copied from them.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from agents.messages import Json
from tests.support.files import picture
from tests.transfer.samples import BEGUN


def packed(files: dict[str, bytes | str]) -> io.BytesIO:
    """Return an archive with these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made


def chatgpt_tree(*said: Json, **more: Any) -> Json:
    """Return a ChatGPT conversation with these messages in succession."""
    mapping: Json = {}
    for place, message in enumerate(said):
        author = {"role": "assistant", **message.get("author", {})}
        whole = {"create_time": BEGUN + place, "recipient": "all", "metadata": {}, **message, "author": author}
        mapping[f"n{place}"] = {"message": whole, "parent": f"n{place - 1}" if place else None, "children": []}
    return {
        "title": "Cats",
        "create_time": BEGUN,
        "mapping": mapping,
        "current_node": f"n{len(said) - 1}",
        **more,
    }


def text(*parts: str | Json) -> Json:
    return {"content_type": "multimodal_text", "parts": list(parts)}


def pointer(asset: str, kind: str = "image_asset_pointer") -> Json:
    return {"content_type": kind, "asset_pointer": asset, "width": 1, "height": 1}


def chatgpt_archive() -> io.BytesIO:
    """Return an archive with a picture and a note of the user, a generated picture, a plot, and a missing file."""
    attached = [
        {"id": "file-cat1", "name": "cat.png", "mime_type": "image/png"},
        {"id": "file-note", "name": "note.txt", "mime_type": "text/plain"},
        {"id": "file-gone", "name": "gone.pdf", "mime_type": "application/pdf"},
    ]
    talk = chatgpt_tree(
        {
            "author": {"role": "user"},
            "content": text(pointer("file-service://file-cat1"), "What is it?"),
            "metadata": {"attachments": attached},
        },
        {
            "author": {"role": "tool", "name": "dalle.text2im"},
            "content": text(pointer("sediment://file_00000000aa")),
        },
        {"recipient": "python", "content": {"content_type": "code", "text": "plot()"}},
        {
            "author": {"role": "tool", "name": "python"},
            "content": {"content_type": "execution_output", "text": "done"},
            "metadata": {"aggregate_result": {"messages": [{"image_url": "file-service://file-plot"}]}},
        },
        {"content": {"content_type": "text", "parts": ["A cat."]}},
        is_archived=True,
        is_starred=True,
    )
    return packed(
        {
            "conversations.json": json.dumps([talk, {"title": "Corrupted entry", "id": "x"}]),
            "file-cat1-cat.png": picture(),
            "user-1/file-note-note.txt": b"Meow",
            "dalle-generations/file_00000000aa.dat": picture(),
            "file-plot": picture(),
            "conversation_asset_file_names.json": json.dumps({"file_00000000aa.dat": "made.png"}),
        }
    )


def open_webui(**more: Any) -> Json:
    """Return a question with a file, an answer with typed items, another answer with blocks of HTML, and an error."""
    block = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n&gt; 6 &lt; 7\n'
        "</details>\n"
        '<details type="tool_calls" done="true" id="c2" name="add" arguments="&quot;{\\&quot;a\\&quot;: 1}&quot;" '
        'result="&quot;42&quot;" files="">\n<summary>Tool Executed</summary>\n</details>\nIt is 42.'
    )
    output = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm"}], "summary": None},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Paris"}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "18C"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Mild."}]},
        {"type": "hologram"},
    ]
    messages = {
        "a": {
            "role": "user",
            "content": "Weather?",
            "timestamp": 1_700_000_000,
            "parentId": None,
            "files": [{"type": "file", "name": "map.txt", "file": {"data": {"content": "Paris"}}}, {"type": "image"}],
        },
        "x": {"role": "assistant", "content": "Other", "parentId": "a"},
        "b": {
            "role": "assistant",
            "content": "Mild.",
            "model": "m1",
            "output": output,
            "parentId": "a",
            "timestamp": 1_700_000_005,
            "sources": [{"source": {"name": "Met", "url": "https://met.example"}, "metadata": []}],
        },
        "c": {"role": "user", "content": "6 × 7?", "parentId": "b"},
        "d": {"role": "assistant", "content": block, "parentId": "c", "error": {"content": "Too late."}},
    }
    chat = {"history": {"currentId": "d", "messages": messages}, "models": ["m1"], "system": "Be brief."}
    times = {"created_at": 1_700_000_000, "updated_at": 1_700_000_010}
    return {"id": "1", "title": "Paris", "chat": chat, **times, "archived": False, "pinned": True, **more}


def librechat(*, recursive: bool) -> Json:
    """Return a question and an answer of typed parts, beside an earlier answer."""
    parts = [
        {"type": "think", "think": "Hm"},
        {"type": "tool_call", "tool_call": {"id": "c1", "name": "web", "args": '{"q": "cats"}', "output": "Found"}},
        {"type": "text", "text": "Cats purr \ue202turn0search0 and \ue202turn0search7."},
        {"type": "hologram"},
    ]
    results = {"turn": 0, "organic": [{"title": "On cats", "link": "https://cats.example/a"}]}
    said: list[Json] = [
        {
            "messageId": "a",
            "parentMessageId": "00000000-0000-0000-0000-000000000000",
            "isCreatedByUser": True,
            "text": "What do cats do?",
            "createdAt": "2024-04-09T14:32:05.230Z",
            "files": [{"filename": "cat.png"}],
        },
        {"messageId": "x", "parentMessageId": "a", "text": "Sleep.", "createdAt": "2024-04-09T14:32:06.230Z"},
        {
            "messageId": "b",
            "parentMessageId": "a",
            "model": "gpt-4o",
            "text": "",
            "content": parts,
            "createdAt": "2024-04-09T14:33:05.230Z",
            "attachments": [{"type": "web_search", "web_search": results}],
        },
    ]
    head = {"conversationId": "1", "title": "Cats", "options": {"model": "gpt-4", "promptPrefix": "Be brief."}}
    if recursive:
        return {**head, "recursive": True, "messagesTree": [{**said[0], "children": said[1:]}]}
    return {**head, "recursive": False, "messages": said}
