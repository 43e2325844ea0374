"""Traces for OpenTelemetry, by its conventions for generative AI: turns, requests to models, and tools.

Without OTEL_EXPORTER_OTLP_ENDPOINT, nothing is imported or traced. Spans contain names, ids and counts, but no content.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from django.conf import settings

from agents.events import (
    ResponseDone,
    ResponseStarted,
    RetryScheduled,
    ToolReturned,
    ToolStarted,
    TurnFailed,
    TurnFinished,
)
from agents.tools import TOOL_NAME
from chat.runs.turn_state import Stopped, TurnEvent, TurnState

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

# Replaces names that no tool can have. A model can call a tool that does not exist, and write any text as its name.
INVALID_NAME = "(invalid name)"
# The most characters of a call's id.
MAX_ID_LENGTH = 200
_provider: TracerProvider | None = None


def missing_package() -> str:
    """Return the name of the package that is missing for traces; return "" if none is missing or traces are off."""
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return ""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401  # looked for
    except ImportError as error:
        return str(error.name)
    return ""


def open_tracing() -> None:
    """Send traces from now on, if an endpoint is set. The SDK reads its other OTEL_ variables itself."""
    global _provider
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes["service.name"]).startswith("unknown_service"):  # no variable names it
        resource = Resource.create({"service.name": "parley"})
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))


async def close_tracing() -> None:
    """Send the remaining spans from a thread, and end tracing."""
    global _provider
    provider, _provider = _provider, None
    if provider is not None:
        await asyncio.to_thread(provider.shutdown)


def begin_trace(session_id: str, state: TurnState) -> TurnTrace | None:
    """Begin the trace of a turn, or of the rest of a continued turn; return None if traces are off."""
    if _provider is None:
        return None
    return TurnTrace(_provider.get_tracer("parley"), session_id, state)


class TurnTrace:
    """The spans of one turn: `invoke_agent`, with a child `chat` per request and a child `execute_tool` per tool."""

    def __init__(self, tracer: Tracer, session_id: str, state: TurnState) -> None:
        from opentelemetry.trace import set_span_in_context

        self._tracer = tracer
        self._common = {"gen_ai.conversation.id": session_id, "parley.turn.id": state.turn_id}
        attributes = {**self._common, "gen_ai.operation.name": "invoke_agent", "parley.mode": state.mode}
        if state.agent_id:
            attributes["gen_ai.agent.id"] = state.agent_id
        self._turn = tracer.start_span("invoke_agent", attributes=attributes)
        self._context = set_span_in_context(self._turn)
        self._response: Span | None = None
        self._tools: dict[str, Span] = {}

    def apply(self, event: TurnEvent, state: TurnState) -> None:
        """Begin or end a span for an event. `state` is the state before the event."""
        match event:
            case ResponseStarted():
                self._begin_response(event)
            case ResponseDone():
                self._end_response(event, state)
            case RetryScheduled():
                self._fail_response(event.error.code)
            case ToolStarted():
                self._begin_tool(event)
            case ToolReturned():
                if (tool := self._tools.pop(event.result.call_id, None)) is not None:
                    _end(tool, "tool" if event.result.is_error else "")
            case TurnFinished():
                self.end(event.reason)
            case TurnFailed():
                self._fail_response(event.error.code)
                self.end("failed", event.error.code)
            case Stopped():
                self.end("stopped")

    def end(self, outcome: str, error: str = "") -> None:
        """End the turn's span and all open spans in it. Later calls do nothing."""
        self._fail_response(outcome)
        for tool in self._tools.values():
            _end(tool, outcome)
        self._tools.clear()
        if self._turn.is_recording():
            self._turn.set_attribute("parley.outcome", outcome)
            _end(self._turn, error)

    def _begin_response(self, event: ResponseStarted) -> None:
        from opentelemetry.trace import SpanKind

        self._response = self._tracer.start_span(
            f"chat {event.model}",
            context=self._context,
            kind=SpanKind.CLIENT,
            attributes={
                **self._common,
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": event.provider,
                "gen_ai.request.model": event.model,
            },
        )

    def _end_response(self, event: ResponseDone, state: TurnState) -> None:
        if self._response is None:
            return
        usage = event.usage
        figures = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "parley.first_token_ms": state.first_token_ms,
        }
        self._response.set_attributes({name: value for name, value in figures.items() if value is not None})
        self._response.set_attribute("gen_ai.response.finish_reasons", [event.stop_reason])
        _end(self._response)
        self._response = None

    def _fail_response(self, error: str) -> None:
        if self._response is not None:
            _end(self._response, error)
            self._response = None

    def _begin_tool(self, event: ToolStarted) -> None:
        call = event.call
        name = call.name if TOOL_NAME.fullmatch(call.name) else INVALID_NAME
        self._tools[call.id] = self._tracer.start_span(
            f"execute_tool {name}",
            context=self._context,
            attributes={
                **self._common,
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": call.id[:MAX_ID_LENGTH],
            },
        )


def _end(span: Span, error: str = "") -> None:
    """End a span. `error` is only the kind of the failure, because its text could quote the conversation."""
    from opentelemetry.trace import StatusCode

    if error:
        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR)
    span.end()
