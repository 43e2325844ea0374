"""Messages of MCP servers that contain characters which cannot be stored."""

from __future__ import annotations

import json
import sys

import pytest

from agents.mcp.config import AddedServer, ServerConfig
from agents.mcp.examine import examine
from agents.mcp.unstorable import StorableJson, storable_json
from tests.support.mcp_server import NONSENSE, serving


@pytest.mark.parametrize(
    ("text", "storable"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\udc4b\ud83d\ud83d\udc4b\ud83d", "\ufffd\ufffd\U0001f44b\ufffd"),
        ("a\0b", "a\ufffdb"),
        ("\\ud83d \\\\u0000 \\\0", "\\ud83d \\\\u0000 \\\ufffd"),
        ('一 "quoted"\n\t\\', '一 "quoted"\n\t\\'),
    ],
)
def test_characters_that_cannot_be_stored_are_replaced(text: str, storable: str) -> None:
    """MSG-12: lone surrogates and NUL are replaced, wherever a message is split, and nothing else is changed."""
    data = json.dumps({"text": text}).encode()
    assert json.loads(storable_json(data)) == {"text": storable}
    for end in range(len(data)):
        pieces = StorableJson()
        assert pieces.add(data[:end]) + pieces.add(data[end:]) + pieces.end() == storable_json(data)


def test_data_that_ends_within_an_escape_is_kept() -> None:
    assert [storable_json(data) for data in (rb'"\ud8', rb'"\ud83d\u', rb"\\")] == [rb'"\ud8', rb'"\ud83d\u', rb"\\"]


async def test_half_a_character_does_not_make_an_address_unavailable() -> None:
    """UI-16: half a character in the name of one tool costs only this tool, over HTTP, too."""
    with serving(sys.executable, str(NONSENSE), "invalid", "http") as url:
        config = ServerConfig(url=url, internal_hosts=("127.0.0.1",))
        offer = await examine(AddedServer("row 1", "1", "notes", config))
    assert (offer.problem, offer.resources) == ("", 1)
    assert [tool.name for tool in offer.tools] == ["babble", "refuse", "process", "home", "repeat"]
    assert [tool.name for tool in offer.skipped[-2:]] == ["half\ufffd", "home"]
