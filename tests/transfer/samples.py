"""Small conversations as other programs export them, with everything that Parley supports of their formats."""

from __future__ import annotations

from agents.messages import Json

BEGUN = 1_772_000_000.5


def chatgpt(title: str = "Trip to Kyoto") -> Json:
    """Return a question with a picture and a file, and two answers to it. The current one has thoughts and executed
    code."""
    said: list[tuple[str, Json, Json]] = [
        ("system", {"content_type": "text", "parts": [""]}, {}),
        ("user", {"content_type": "user_editable_context", "user_profile": "I like tea"}, {}),
        (
            "user",
            {
                "content_type": "multimodal_text",
                "parts": [
                    {"content_type": "image_asset_pointer", "asset_pointer": "file://1", "width": 640, "height": 480},
                    "How many days?\0",
                ],
            },
            {"metadata": {"attachments": [{"name": "plan.pdf", "mime_type": "application/pdf"}]}},
        ),
        (
            "assistant",
            {"content_type": "thoughts", "thoughts": [{"summary": "Counting", "content": "Days and nights."}]},
            {"metadata": {"model_slug": "gpt-5"}},
        ),
        (
            "assistant",
            {"content_type": "code", "language": "unknown", "text": "print(3 + 4)"},
            {"recipient": "python", "metadata": {"model_slug": "gpt-5"}},
        ),
        ("tool", {"content_type": "execution_output", "text": "7"}, {"author": {"role": "tool", "name": "python"}}),
        ("assistant", {"content_type": "reasoning_recap", "content": "Thought for 3 seconds"}, {}),
        (
            "assistant",
            {"content_type": "text", "parts": ["**Seven** days."]},
            {"metadata": {"model_slug": "gpt-5"}},
        ),
    ]
    mapping: Json = {"root": {"id": "root", "message": None, "parent": None, "children": ["n0"]}}
    for place, (role, content, more) in enumerate(said):
        message = {"author": {"role": role}, "content": content, "create_time": BEGUN + place, "recipient": "all"}
        parent = f"n{place - 1}" if place else "root"
        mapping[f"n{place}"] = {"id": f"n{place}", "message": message | more, "parent": parent, "children": []}
    other = {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Three."]}}
    mapping["other"] = {"id": "other", "message": other, "parent": "n2", "children": []}
    return {
        "title": title,
        "create_time": BEGUN,
        "update_time": BEGUN + 60,
        "mapping": mapping,
        "current_node": f"n{len(said) - 1}",
    }


def claude(name: str = "Naming a café") -> Json:
    """Return a question with pasted text and a picture, thoughts, a tool's result, an answer, and another message."""
    return {
        "uuid": "9d6f",
        "name": name,
        "created_at": "2025-11-02T09:00:00.000000Z",
        "updated_at": "2025-11-02T09:05:00.000000Z",
        "account": {"uuid": "1"},
        "chat_messages": [
            {
                "uuid": "a",
                "text": "",
                "sender": "human",
                "created_at": "2025-11-02T09:00:00.000000Z",
                "content": [{"type": "text", "text": "Find a name."}],
                "attachments": [{"file_name": "brief.txt", "file_size": 12, "extracted_content": "A small café"}],
                "files": [{"file_name": "street.jpg"}],
            },
            {
                "uuid": "b",
                "text": "How about Ebb?",
                "sender": "assistant",
                "created_at": "2025-11-02T09:01:00.000000Z",
                "content": [
                    {"type": "thinking", "thinking": "By the sea.", "start_timestamp": "2025-11-02T09:01:00.000000Z"},
                    {"type": "tool_use", "name": "web_search", "input": {"query": "café names"}},
                    {
                        "type": "tool_result",
                        "name": "web_search",
                        "is_error": False,
                        "content": [{"type": "text", "text": "Tide, Ebb"}, {"type": "image"}],
                    },
                    {"type": "text", "text": "How about **Ebb**?"},
                    {"type": "voice_note", "title": "?"},
                ],
                "attachments": [],
                "files": [],
            },
            {"uuid": "c", "text": "Lovely!", "sender": "human", "created_at": "2025-11-02T09:05:00.000000Z"},
        ],
    }
