"""Traces reach a collector in OpenTelemetry's protocol, with names, ids and counts, and without content."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_django.fixtures import Settings

from agents.errors import Overloaded
from agents.events import Usage
from agents.messages import ToolCall
from agents.providers.scripted import Gate
from chat.checks import traces
from chat.models import Session, User
from chat.runner import tracing
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench

pytestmark = pytest.mark.server
Attributes = dict[str, Any]


class Collector:
    """A collector that stores the traces that it receives."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.body = b""
        self.service = ""

    async def take(self, request: web.Request) -> web.Response:
        self.body += (body := await request.read())
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.service = attributes(resource.resource)["service.name"]
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return web.Response()

    def named(self, name: str) -> Any:
        (found,) = [span for span in self.spans if span.name == name]
        return found


def attributes(span: Any) -> Attributes:
    found = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found


@pytest.fixture
def environ() -> dict[str, str]:
    """The SDK's variables."""
    return {}


@pytest_asyncio.fixture
async def collector(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> AsyncIterator[Collector]:
    collector = Collector()
    application = web.Application()
    application.router.add_post("/v1/traces", collector.take)
    server = web.AppRunner(application, access_log=None)
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{server.addresses[0][1]}"
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = address
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    tracing.open_tracing()
    yield collector
    await tracing.close_tracing()
    await server.cleanup()


async def ask(node: TestNode, owner: User) -> Session:
    session = await node.session(owner)
    await node.send(session, owner, "My secret question")
    await node.idle(session)
    return session


@pytest.mark.parametrize(
    "environ", [{"OTEL_SERVICE_NAME": "staging"}, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=staging"}]
)
async def test_variables_of_the_sdk_name_the_service(node: TestNode, collector: Collector, ana: User) -> None:
    """OPS-09: two installations have different names in one collector."""
    node.script(["Hello."])
    await ask(node, ana)
    await tracing.close_tracing()
    assert collector.service == "staging"


async def test_turn_is_traced_by_the_conventions(node: TestNode, collector: Collector, ana: User) -> None:
    """OPS-09: a turn with its requests and tools is one trace, which can be found by the session's id."""
    bench = Workbench()
    bench.let_go(1)
    node.script(
        [["Secret answer", ToolCall("c1", "work", {"n": 1}), Usage(30, 7, cache_read_tokens=20)], ["Done."]],
        tools=[bench.tool],
    )
    session = await ask(node, ana)
    await tracing.close_tracing()

    turn, tool = collector.named("invoke_agent"), collector.named("execute_tool work")
    first, second = [span for span in collector.spans if span.name == "chat one"]
    assert collector.service == "parley"
    assert {span.trace_id for span in collector.spans} == {turn.trace_id}
    assert {span.parent_span_id for span in (first, second, tool)} == {turn.span_id}
    seen = attributes(first)
    assert isinstance(seen.pop("parley.first_token_ms"), int)
    turn_id = seen.pop("parley.turn.id")
    assert seen == {
        "gen_ai.conversation.id": session.pk,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "one",
        "gen_ai.response.finish_reasons": ["tool_use"],
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 20,
    }
    assert attributes(tool) == {
        "gen_ai.conversation.id": session.pk,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "work",
        "gen_ai.tool.call.id": "c1",
        "parley.turn.id": turn_id,
    }
    assert (attributes(turn)["parley.outcome"], attributes(turn)["parley.turn.id"]) == ("done", turn_id)
    assert b"ecret" not in collector.body


async def test_errors_are_traced_by_kind(node: TestNode, collector: Collector, ana: User) -> None:
    """OPS-09: the trace of an error has its kind without the provider's message, which may quote the conversation."""
    node.script([[Overloaded("secret of the provider", retry_after=0)], ["Done."]])
    await ask(node, ana)
    await tracing.close_tracing()

    failed, done = [span for span in collector.spans if span.name == "chat one"]
    assert (attributes(failed)["error.type"], failed.status.code, failed.status.message) == ("overloaded", 2, "")
    assert "error.type" not in attributes(done)
    assert b"secret" not in collector.body


async def test_name_that_a_model_made_up_is_not_traced(node: TestNode, collector: Collector, ana: User) -> None:
    """OPS-09: a model can call a tool that does not exist, by a name that is any text."""
    node.script([[ToolCall("c1", "tell secret " * 100, {}), Usage(1, 1)], ["Done."]])
    await ask(node, ana)
    await tracing.close_tracing()

    tool = collector.named("execute_tool (invalid name)")
    assert (attributes(tool)["gen_ai.tool.name"], attributes(tool)["error.type"]) == ("(invalid name)", "tool")
    assert b"secret" not in collector.body


async def test_stopped_turn_ends_its_spans(node: TestNode, collector: Collector, ana: User) -> None:
    """OPS-09: a stopped turn ends its spans, because open spans are never sent."""
    gate = Gate()
    node.script([["One", gate]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    await node.cancel(session, ana)
    await node.idle(session)
    await tracing.close_tracing()

    assert attributes(collector.named("invoke_agent"))["parley.outcome"] == "stopped"
    assert attributes(collector.named("chat one"))["error.type"] == "stopped"


async def test_nothing_is_traced_without_an_endpoint(node: TestNode, settings: Settings, ana: User) -> None:
    """OPS-09: without an endpoint, no span is made and OpenTelemetry's SDK is not called."""
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = ""
    tracing.open_tracing()
    node.script([["Done."]])
    await ask(node, ana)

    assert tracing._provider is None
    assert traces() == []


def test_missing_package_is_an_error_at_the_start(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-09: a missing package fails at the start, so that an operator who configured traces notices it."""
    import sys

    settings.OTEL_EXPORTER_OTLP_ENDPOINT = "http://collector:4318"
    assert traces() == []
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    (error,) = traces()

    assert error.is_serious()
    assert "requirements/tracing.txt" in str(error.hint)


@pytest.mark.parametrize("address", ["collector:4318", "x", "ftp://collector"])
def test_address_that_cannot_get_traces_is_an_error_at_the_start(settings: Settings, address: str) -> None:
    """OPS-09: an address without http: or https: fails at the start, because no trace would ever arrive."""
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = address

    (error,) = traces()

    assert error.is_serious()
    assert "http://collector:4318" in str(error.hint)
