"""What is imported from Open WebUI: edited answers, pictures in answers, and results of tools."""

from __future__ import annotations

import base64
import html
import io
import json
import time
from collections.abc import Callable
from random import Random

import pytest
from PIL import Image

from agents.messages import Json
from chat.models import Attachment, ChatMessage, User
from chat.transfer.formats import open_webui
from chat.transfer.formats.parsed import Loss, ParsedConversation
from chat.transfer.importing.files import import_file
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


def chat(content: str, *output: Json, **more: object) -> Json:
    """Return a chat with one question and this answer."""
    messages = {
        "u": {"role": "user", "content": "Which color?", "parentId": None},
        "a": {"role": "assistant", "content": content, "output": list(output), "parentId": "u", **more},
    }
    history = {"messages": messages, "currentId": "a"}
    return {"title": "Colors", "chat": {"history": history}, "created_at": 1_775_600_000, "updated_at": 1_775_600_000}


def answered(content: str, *output: Json, **more: object) -> ParsedConversation:
    return open_webui.read(chat(content, *output, **more))


def image(data: bytes, alt: str = "", kind: str = "png") -> str:
    """Return an image as some models write it."""
    return f"![{alt}](data:image/{kind};base64,{base64.b64encode(data).decode()})"


def answers(found: ParsedConversation) -> list[tuple[str, str, str, str]]:
    return [row for row in shown(found.document["messages"]) if row[1] == "assistant"]


def noise(size: tuple[int, int]) -> bytes:
    """Return a PNG image that does not compress."""
    out = io.BytesIO()
    Image.frombytes("RGB", size, Random(1).randbytes(3 * size[0] * size[1])).save(out, "PNG")
    return out.getvalue()


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


@pytest.mark.django_db
@pytest.mark.parametrize("size", [(80, 60), (1_000, 600)])
def test_images_in_an_answer_become_files(own_files: None, ana: User, size: tuple[int, int]) -> None:
    """MSG-10: their bytes are neither text for the model, nor do they make the conversation too long to be imported."""
    drawn = noise(size)
    assert (len(drawn) > 1_600_000) == (size == (1_000, 600))
    file = io.BytesIO(json.dumps(chat(f"Here it is:\n\n{image(drawn, 'A cat')}\n\nLike it?")).encode())
    outcome = import_file(owner=ana, file=file)
    assert outcome.problems == []
    [made] = outcome.imported
    answer = ChatMessage.objects.get(session=made.session, type="text", role="assistant")
    assert answer.text == "Here it is:\n\n\n\nLike it?"
    kept = Attachment.objects.get(message=answer)
    assert (kept.name, kept.kind, kept.width, kept.height) == ("A cat.png", "image", *size)


def test_images_in_texts_count_as_files_of_their_message() -> None:
    """A message has up to ten files. Further images are named at their places, and counted."""
    found = answered("\n".join(image(b"x" * 100, f"P {number}") for number in range(12)))
    [answer] = [each for each in found.document["messages"] if each.get("role") == "assistant"]
    assert [each["name"] for each in answer["attachments"]] == [f"P {number}.png" for number in range(10)]
    assert answer["text"] == "[File P 10.png: left out]\n[File P 11.png: left out]"
    assert +found.left == {Loss.SURPLUS: 2}


@pytest.mark.parametrize("text", ["Write ![a](data:image/png;base64,iVBOR).", "![a](data:image/png;base64, lost)"])
def test_examples_of_images_stay_text(text: str) -> None:
    [row] = answers(answered(text))
    assert row[2] == text


@pytest.mark.parametrize("piece", ["![", "![](data:image/png", "![](data:image/png;base64,AAAA", "![a](data:image/a.;"])
def test_texts_like_images_take_linear_time(piece: str) -> None:
    """MSG-12: a text that was written for it does not hold the server."""
    began = time.process_time()
    answered(";base64," + piece * (2_000_000 // len(piece)))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        (4, "4"),
        (True, "true"),
        ([1, "é"], '[1, "é"]'),
        ({"a": None}, '{"a": null}'),
        ("", ""),
        (None, ""),
    ],
)
def test_results_of_code_are_imported_whatever_they_are(result: object, wanted: str) -> None:
    """MSG-10: Open WebUI stores numbers, truth values, lists and objects unchanged."""
    output = {"stdout": None, "stderr": "", "result": result}
    item = {"type": "open_webui:code_interpreter", "id": "c", "code": "2 + 2", "output": output}
    attribute = html.escape(json.dumps(output))
    block = f'<details type="code_interpreter" done="true" output="{attribute}">\n2 + 2\n</details>'
    for found in (answered("", item), answered(block)):
        assert answers(found) == [("tool_group", "assistant", '{"code": "2 + 2"}', wanted)]


@pytest.mark.parametrize("wrap", [lambda url: url, lambda url: {"url": url}])
def test_images_and_files_of_a_result_are_imported_or_counted(wrap: Callable[[str], object]) -> None:
    """MSG-10: a result has no files, so an assistant's message after it has them. An image in both lists is one."""
    drawn = "data:image/png;base64,AAAA"
    result = {
        **RESULT,
        "output": [*RESULT["output"], {"type": "input_image", "image_url": wrap(drawn)}],
        "files": [{"type": "image", "url": drawn}, {"type": "file", "name": "a.csv", "url": "/api/v1/files/1"}],
    }
    found = answered("", CALL, result, said("Blue."))
    assert answers(found) == [
        LOOKS,
        ("text", "assistant", "[File a.csv: not in the export]", ""),
        ("text", "assistant", "Blue.", ""),
    ]
    [row] = [each for each in found.document["messages"] if each.get("attachments")]
    assert row["attachments"] == [{"name": "image", "data": "AAAA"}]
    assert +found.left == {Loss.FILES: 1}
