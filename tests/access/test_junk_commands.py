"""Invalid input in every field of every command, from each actor with access: an ack or a refusal, never a failure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chat import consumers
from tests.access.people import EDITOR, MESSAGE, OWNER, VIEWER, People
from tests.access.test_sockets import COMMANDS
from tests.support.effort import share_of
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode

JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**62 - 1,
    10**30,
    float("nan"),
    float("inf"),
    "",
    "a\0b",
    "a\ud800b",
    "\U0001f600\u202e",
    "../../etc/passwd",
    "'\"><script>alert(1)</script>%s{0.__class__}",
    "x" * 3000,
    MESSAGE,
    [],
    ["a\0b"],
    [[[[]]]],
    {},
    {"a\0b": {"": None}},
)
# Optional fields of commands.
OPTIONAL = {
    "send": ("key", "attachments"),
    "edit": ("revision",),
    "editing": ("open",),
    "fork": ("text", "run"),
    "set_system_prompt": ("seen",),
}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A higher rate limit, because the number of commands is not tested here."""
    monkeypatch.setattr(consumers, "BURST", 100_000)


def thrown() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    number = 0
    for kind, fields in COMMANDS.items():
        for name in (*fields, *OPTIONAL.get(kind, ()), "unknown"):
            number += 1
            found += ({"type": kind, **fields, name: junk} for junk in share_of(JUNK, number))
    return found


@pytest.mark.parametrize("actor", [pytest.param(OWNER, marks=pytest.mark.both_databases), EDITOR, VIEWER])
async def test_junk_in_commands(node: TestNode, people: People, actor: str) -> None:
    """MSG-12: no command causes a server error or closes the socket."""
    node.script(lambda request: ["Yes."])
    async with Socket(path_of(people.session), people[actor]) as socket:
        for number, command in enumerate(thrown()):
            socket.send(ref=f"r{number}", **command)
            answer = await socket.next(ref=f"r{number}")
            assert answer.get("code") not in ("internal", "unavailable"), json.dumps(command)[:200]
        assert socket.close_code is None
    await node.idle(people.session)
