"""What is imported from Open WebUI: edited answers, pictures in answers, and results of tools."""

from __future__ import annotations

import pytest

from agents.messages import Json
from chat.transfer.formats import open_webui
from chat.transfer.formats.parsed import ParsedConversation
from tests.transfer.test_foreign import shown

THOUGHT: Json = {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm"}]}
CALL: Json = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
RESULT: Json = {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "Sky"}]}
THOUGHT_BLOCK = '<details type="reasoning" done="true">\n<summary>Thought</summary>\n&gt; Hm\n</details>\n'
CALL_BLOCK = (
    '<details type="tool_calls" done="true" id="c1" name="look" arguments="{}" result="&quot;Sky&quot;">\n'
    "<summary>Tool Executed</summary>\n</details>\n"
)
THINKS, LOOKS = ("reasoning", "assistant", "Hm", ""), ("tool_group", "assistant", "{}", "Sky")


def said(text: str) -> Json:
    return {"type": "message", "content": [{"type": "output_text", "text": text}]}


def answered(content: str, *output: Json, **more: object) -> ParsedConversation:
    """Read a chat with one question and this answer."""
    messages = {
        "u": {"role": "user", "content": "Which color?", "parentId": None},
        "a": {"role": "assistant", "content": content, "output": list(output), "parentId": "u", **more},
    }
    chat = {"history": {"messages": messages, "currentId": "a"}}
    return open_webui.read({"title": "Colors", "chat": chat, "created_at": 1_775_600_000})


def answers(found: ParsedConversation) -> list[tuple[str, str, str, str]]:
    return [row for row in shown(found.document["messages"]) if row[1] == "assistant"]


@pytest.mark.parametrize(
    ("content", "output", "wanted"),
    [
        ("Yellow", [said("Cerulean.")], ["Yellow"]),
        ("Yellow", [THOUGHT, CALL, RESULT, said("Cerulean.")], [THINKS, LOOKS, "Yellow"]),
        (
            f"{THOUGHT_BLOCK}Wait.\n{CALL_BLOCK}Yellow",
            [THOUGHT, said("Wait."), CALL, RESULT, said("Cerulean.")],
            [THINKS, "Wait.", LOOKS, "Yellow"],
        ),
    ],
)
def test_the_edited_text_of_an_answer_is_imported(content: str, output: list[Json], wanted: list[object]) -> None:
    """MSG-10: a corrected answer is not imported with its old text. Its thoughts and calls stay."""
    found = answered(content, *output, originalContent="Cerulean.")
    assert [row if row[0] != "text" else row[2] for row in answers(found)] == wanted
    assert not +found.left


@pytest.mark.parametrize(
    "content",
    [
        "",
        "One.\n\n\nTwo. ![cat](/api/v1/files/1/content)",
        f"{THOUGHT_BLOCK}One.\n{CALL_BLOCK}Two.",
        '<details type="chart">\n</details>\nOne. Two.',
        f'{THOUGHT_BLOCK}One.\n<details type="tool_calls" done="false">\nTwo.',
    ],
)
def test_items_are_imported_if_the_text_is_not_edited(content: str) -> None:
    """Items say more than the text that was made of them: whether a tool failed, and kinds without a block."""
    last = "Two. ![cat](data:image/png;base64,AA)"
    found = answered(content, THOUGHT, said("One."), CALL, {**RESULT, "status": "failed"}, said(last))
    assert answers(found) == [
        THINKS,
        ("text", "assistant", "One.", ""),
        LOOKS,
        ("text", "assistant", last, ""),
    ]
    assert [each["is_error"] for each in found.document["messages"] if each.get("type") == "tool_group"] == [True]
