"""docs/protocol.md describes exactly the protocol of Parley."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any, get_args

from agents.errors import AgentError
from chat.api import errors
from chat.api.api import api
from chat.bus.events import MessageEventName
from chat.command_frames import parse
from chat.commands import COMMANDS
from chat.files.contents import Problem
from chat.live import subscriber
from chat.live.event_json import MAX_CHARS, MAX_MESSAGES
from chat.models import User
from chat.projections.steps import Step
from chat.servers import responses
from chat.session_snapshot import SessionSnapshot
from chat.snapshots import AttachmentSnapshot, MessageSnapshot, ToolSnapshot, UsageSnapshot
from tests.protocol import document
from tests.protocol.exchange import Exchange, followed
from tests.support.agreement import agree
from tests.support.testing_node import TestNode

SOURCES = [path.read_text() for path in sorted((document.ROOT / "chat").rglob("*.py"))]
# The modules with frames that only sockets have.
SOCKET = [
    (document.ROOT / "chat" / name).read_text() for name in ("consumers.py", "live/socket_queue.py", "live/feed.py")
]


def found(pattern: str, sources: list[str]) -> set[str]:
    return {name for source in sources for name in re.findall(pattern, source)}


def names_of(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]


def type_of(command: Any) -> str:
    return str(get_args(command.model_fields["type"].annotation)[0])


def test_every_command_is_described() -> None:
    """LIVE-02: each command is described with its required and optional fields."""
    said: dict[str, dict[str, bool]] = {}
    for row in document.rows("Commands"):
        documented = {name: not sign for name, sign in re.findall(r"`([a-z_]+)(\??)`", row[1])}
        said |= dict.fromkeys(document.WORD.findall(row[0]), documented)
    real = {
        type_of(kind): {
            name: field.is_required() for name, field in kind.model_fields.items() if name not in ("type", "ref")
        }
        for kind in COMMANDS
    }
    table = 'the table of "Commands" in docs/protocol.md'
    agree(
        said,
        real,
        missing=f"Add a row for `{{}}` to {table}.",
        extra=f"Remove `{{}}` from {table}: there is no such command.",
    )
    wrong = [
        f"`{kind}` is described with {written(said[kind])}, and takes {written(fields)}: fix its row in {table}."
        for kind, fields in real.items()
        if said[kind] != fields
    ]
    assert not wrong, "\n".join(wrong)


def written(fields: dict[str, bool]) -> str:
    """Return the fields as the document writes them, with a question mark after optional ones."""
    return ", ".join(f"`{name}`" if is_required else f"`{name}`?" for name, is_required in fields.items()) or "nothing"


def test_every_event_is_described() -> None:
    """RUN-02: the named events and the other frames are described."""
    of_sockets = found(r'"type": ?"([a-z_]+)"', SOCKET)
    schemas = api.get_openapi_schema()["components"]["schemas"]
    described = set(schemas["Event"]["discriminator"]["mapping"])
    assert described >= set(get_args(MessageEventName))
    table = 'the table of "Event types" in docs/protocol.md'
    agree(
        document.names("Event types"),
        described | of_sockets,
        missing=f"Add a row for `{{}}` to {table}.",
        extra=f"Remove `{{}}` from {table}: no such event is sent.",
    )


def test_every_field_is_described() -> None:
    """MSG-10: the fields of messages and sessions are described."""
    message, session = document.rows("A message"), document.rows("A session")
    agree(
        [name for row in message for name in document.WORD.findall(row[0])],
        names_of(MessageSnapshot),
        missing='Describe the field `{}` in the table of "A message" in docs/protocol.md.',
        extra='Remove `{}` from the table of "A message" in docs/protocol.md: a message has no such field.',
    )
    documented = {
        name: set(document.WORD.findall(text)) for name, text in ((row[0].strip("`"), row[1]) for row in message)
    }
    assert documented["tool"] >= set(names_of(ToolSnapshot))
    assert documented["usage"] == set(names_of(UsageSnapshot))
    assert documented["attachments"] >= set(names_of(AttachmentSnapshot))
    named = {name for row in session for name in document.WORD.findall(row[0])}
    # Clients get this in the call's message instead.
    agree(
        named,
        {*names_of(SessionSnapshot), "context_percent"} - {"asked"},
        missing='Describe the field `{}` in the table of "A session" in docs/protocol.md.',
        extra='Remove `{}` from the table of "A session" in docs/protocol.md: a session has no such field.',
    )


def test_every_code_is_described() -> None:
    """RUN-10: the codes of refusals on sockets and in the API are described."""
    codes = found(r'ServiceError\(\s*"([a-z_]+)"', SOURCES) | found(r'CODE: ClassVar\[str\] = "([a-z_]+)"', SOURCES)
    codes |= found(r'(?<!def )_refuse\([^"]*"([a-z_]+)"', SOURCES) | found(r'[^_]problem\("([a-z_]+)"', SOURCES)
    codes |= set(errors.CODES.values()) | set(responses.CODES.values()) | set(get_args(Problem))
    of_commands = {"no_administrator"}  # of a command line, which has no codes
    said = document.names("Codes")
    assert len(said) == len(set(said))
    agree(
        said,
        codes - of_commands,
        missing='Describe the code `{}` in the table of "Codes" in docs/protocol.md.',
        extra='Remove `{}` from the table of "Codes" in docs/protocol.md: nothing answers with it.',
    )


def test_every_error_of_a_turn_is_described() -> None:
    """RUN-10: the errors of turns are described, with their codes and remedies."""
    said = {
        code: row[2].strip("`") for row in document.rows("Errors of a turn") for code in document.WORD.findall(row[0])
    }
    kinds: list[type[AgentError]] = [AgentError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    assert said == {kind.code: kind.remedy for kind in kinds if kind.__module__ == "agents.errors"}


def test_every_close_code_is_described() -> None:
    """The protocol document describes each close code (LIVE-06)."""
    agree(
        re.findall(r"\d{4}", " ".join(row[0] for row in document.rows("Close codes"))),
        [value for name, value in vars(subscriber).items() if name.isupper() and isinstance(value, int)],
        missing='Describe the code {} in the table of "Close codes" in docs/protocol.md.',
        extra='Remove {} from the table of "Close codes" in docs/protocol.md: no socket is closed with it.',
    )


async def test_example_is_true(node: TestNode, ana: User) -> None:
    """RUN-02, LIVE-02: the example's commands are accepted, and its frames match real ones and cover all kinds."""
    real = Exchange(node, await node.session(ana), ana)
    await real.run()
    shapes = [document.shape(frame) for frame in real.received]
    said = document.exchange()
    for way, frame in said:
        if way == ">":
            parse(json.dumps(frame))
        else:
            like = document.shape(frame)
            assert any(document.is_like(like, each) for each in shapes), f"nothing like it is sent: {frame}"
    seldom = {"head"}  # sent by the beacon
    assert {frame["type"] for way, frame in said if way == "<"} == {frame["type"] for frame in real.received} - seldom


async def test_example_of_steps_is_true(node: TestNode, ana: User) -> None:
    """LIVE-03: each update of the example has the shape of a real one, and steps have the named fields."""
    viewer = await followed(node, await node.session(ana), ana)
    sent = [line.removeprefix("data: ") for line in viewer.text.splitlines() if line.startswith("data: ")]
    shapes = [document.shape(json.loads(update)) for update in sent]
    for update in document.updates():
        assert any(document.is_like(document.shape(update), each) for each in shapes), f"nothing like it: {update}"
    fields_of_step = document.TEXT.partition("in the form of model APIs")[2].partition(". A response")[0]
    assert document.WORD.findall(fields_of_step) == names_of(Step)


def test_the_size_of_a_frame_of_changes_is_described() -> None:
    """LIVE-02: the authors of clients can set the limit of their library."""
    sizes = {row[0]: row[1] for row in document.rows("Limits")}["a frame of `changes`"]
    assert sizes.startswith(f"{MAX_MESSAGES} messages, or about {MAX_CHARS:,} characters")
