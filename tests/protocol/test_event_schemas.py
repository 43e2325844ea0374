"""The events that Parley sends match its OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from chat.api.api import api
from chat.bus.events import FilesChanged
from chat.bus.publisher import publish
from chat.models import User
from chat.services.messages import context_inclusion
from chat.services.runs import compaction
from tests.protocol.exchange import Exchange
from tests.support.step_viewer import EventViewer, bearer
from tests.support.testing_node import TestNode

EVENT = "#/components/schemas/Event"


def strict(value: Any) -> Any:
    """Return a schema whose objects allow only the named fields."""
    if isinstance(value, list):
        return [strict(each) for each in value]
    if not isinstance(value, dict):
        return value
    closed = {"additionalProperties": False} if isinstance(value.get("properties"), dict) else {}
    return {name: strict(each) for name, each in value.items()} | closed


def validator() -> Draft202012Validator:
    components = strict(json.loads(json.dumps(api.get_openapi_schema()["components"])))
    return Draft202012Validator({"$ref": EVENT, "components": components}, format_checker=FormatChecker())


async def test_events_of_a_conversation_are_as_described(node: TestNode, ana: User) -> None:
    """RUN-02, LIVE-03: each type of event occurs on the stream or the socket, with exactly the described fields."""
    session = await node.session(ana)
    viewer = await EventViewer(session, asked=await bearer(node, ana)).open()
    conversation = Exchange(node, session, ana)
    await conversation.run()
    await node.do(compaction.compact, session=session, author=ana)
    await viewer.until(lambda: "compaction_ended" in viewer.client.types)
    await node.idle(session)
    last = (await node.rows(session))[-1]
    await node.do(context_inclusion.include_before, session=session, author=ana, message_id=last.pk, included=False)
    await viewer.until(lambda: "context_changed" in viewer.client.types)
    publish(session.pk, [FilesChanged()])  # as if a tool had written a file in the sandbox
    await viewer.until(lambda: "files_changed" in viewer.client.types)
    await viewer.cut()
    events = [json.loads(line[6:]) for line in viewer.text.splitlines() if line.startswith("data: ")]
    answers = ("ack", "refused", "pong", "head", "resync")
    events += [frame for frame in conversation.received if frame["type"] not in answers]
    schemas = api.get_openapi_schema()["components"]["schemas"]
    assert set(schemas["Event"]["discriminator"]["mapping"]) - {each["type"] for each in events} == set()
    described = validator()
    assert [(error.json_path, error.message) for event in events for error in described.iter_errors(event)] == []


def test_description_refers_to_the_events() -> None:
    """LIVE-03: the stream's response refers to the schema of its events."""
    stream = api.get_openapi_schema()["paths"]["/api/sessions/{session_id}/events"]["get"]["responses"][200]
    schema = stream["content"]["text/event-stream"]["schema"]
    assert (schema["type"], schema["contentSchema"]) == ("string", {"$ref": EVENT})
