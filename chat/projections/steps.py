"""Steps: a session in the form of the model's conversation, with one step for each message (CTX-04)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agents.messages import Json, Part, Text, Thinking, ToolCall, ToolResult
from agents.providers.arguments import arguments_text
from agents.sources import read_sources
from chat.models import ChatMessage, MessageStatus
from chat.projections.context import (
    NOTHING_AROUND,
    Around,
    SourcedMessage,
    is_in_context,
    prompt_row,
    system_prompt,
    with_sources,
)

# A call has no result before its tool is done. The context then has a replacement, which only a model needs.
AT_WORK = (MessageStatus.PENDING, MessageStatus.RUNNING, MessageStatus.WAITING)


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """Metrics of a response or of a tool call: milliseconds, tokens and ISO 8601 times; None if unknown."""

    duration_ms: int | None
    model_name: str
    provider: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    first_token_latency_ms: int | None = None
    tool_exec_time_ms: int | None = None
    tool_exec_start_at: str | None = None
    tool_exec_end_at: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One message of the model's conversation, with its origin.

    `id` is the id of the first row of the step; for a tool's result it is `<row id>.result`. `sequence` is unique in
    the session and orders the steps: it is twice the row's sequence, plus one for a tool's result.
    """

    id: str
    session_id: str
    run_id: str
    sequence: int
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None
    tool_calls: list[Json] | None
    tool_call_id: str | None
    name: str | None
    metrics: StepMetrics | None
    created_at: str
    mode: str
    agent_id: str
    workflow_id: str
    sources: list[Json] | None = None

    def to_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Sourced:
    """A step with the rows from which it is built."""

    step: Step
    rows: tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call that a model is writing: its future step and index there, and the text of its arguments so far."""

    step_id: str
    index: int
    message_id: str
    name: str
    text: str


def steps(rows: Sequence[ChatMessage], around: Around = NOTHING_AROUND) -> list[Sourced]:
    """Return the steps for the rows of a conversation in sequence order. `around` is as in `with_sources`.

    Calls of the last response whose tools are not done have no step for a result yet.
    """
    messages = with_sources(rows, around=around)
    found = _of_prompt(rows, around)
    for each in messages:
        is_last = each is messages[-1]
        found.extend(_of_results(each, is_last) if each.message.tool_results else [_of_words(each)])
    return found


def growing(found: Iterable[Sourced]) -> dict[str, tuple[str, str]]:
    """Return, by step id, the message id and the text so far of each step whose content ends with a streaming text."""
    ends = {each.step.id: [row for row in each.rows if row.type == "text"][-1:] for each in found}
    return {id: (row.pk, row.text) for id, last in ends.items() for row in last if row.status == "streaming"}


def written_calls(rows: Sequence[ChatMessage]) -> Iterator[WrittenCall]:
    """Yield the calls whose arguments a model is writing. They are not part of a step yet."""
    for row in rows:
        if row.type == "tool_group" and row.status == "streaming":
            response = [each for each in rows if each.response_id == row.response_id and each.type != "reasoning"]
            calls = [each for each in response if each.type == "tool_group"]
            first = next((each for each in response if is_in_context(each)), row)
            yield WrittenCall(first.pk, calls.index(row), row.pk, row.tool_name or "unknown", row.text)


def ids_of(row: ChatMessage) -> tuple[str, str]:
    """Return the ids of the steps that may begin with a row."""
    return row.pk, result_id(row)


def result_id(row: ChatMessage) -> str:
    return f"{row.pk}.result"


def sequence_of(row: ChatMessage) -> int:
    """Return the number of the step that begins with a row. The next number belongs to its tool's result (CTX-04).

    It depends only on the row's sequence, so that a part of a session has the same numbers as the whole session.
    """
    return 2 * (row.sequence or 0)


def _of_prompt(rows: Sequence[ChatMessage], around: Around) -> list[Sourced]:
    """Return the step of the system row before all other rows, in a list, because `with_sources` does not return it."""
    row = prompt_row(rows)
    prompt = system_prompt(rows, "", around) if row else ""
    return [Sourced(_step(row, role="system", content=prompt), (row,))] if row and prompt else []


def _of_words(each: SourcedMessage) -> Sourced:
    """Return the step for a message's texts and calls. Reasoning is not part of a step."""
    rows = _once(row for part, row in _parts(each) if not isinstance(part, Thinking))
    texts = [part.text for part in each.message.parts if isinstance(part, Text)]
    calls = [_call(part) for part in each.message.tool_calls]
    is_model = each.message.role == "assistant"
    joint = "" if is_model else "\n\n"
    step = _step(
        rows[0],
        role=each.message.role,
        sources=_sources(rows) if is_model else None,
        content=joint.join(texts) if texts else None,
        tool_calls=calls or None,
        metrics=_of_response(rows, each.sources) if is_model else None,
    )
    return Sourced(step, _once(each.sources))


def _parts(each: SourcedMessage) -> Iterator[tuple[Part, ChatMessage]]:
    return zip(each.message.parts, each.sources, strict=True)


def _of_results(each: SourcedMessage, is_last: bool) -> Iterator[Sourced]:
    for part, row in _parts(each):
        if isinstance(part, ToolResult) and not (is_last and row.status in AT_WORK):
            name = row.tool_name or "unknown"
            step = _step(
                row,
                id=result_id(row),
                sequence=sequence_of(row) + 1,
                role="tool",
                content=part.content,
                tool_call_id=part.call_id,
                name=name,
                sources=_sources((row,)),
                metrics=_of_tool(row),
            )
            yield Sourced(step, (row,))


def _sources(rows: Iterable[ChatMessage]) -> list[Json] | None:
    """Return the sources that rows cite or have found, or None."""
    found = {source.number: source.to_json() for row in rows for source in read_sources(row.sources)}
    return list(found.values()) or None


def _step(row: ChatMessage, **fields: Any) -> Step:
    values: Json = {
        "id": row.pk,
        "session_id": row.session_id,
        "run_id": row.turn_id,
        "sequence": sequence_of(row),
        "tool_calls": None,
        "tool_call_id": None,
        "name": None,
        "metrics": None,
        "created_at": row.timestamp.isoformat(),
        "mode": row.mode,
        "agent_id": row.agent_id,
        "workflow_id": row.workflow_id,
    }
    return Step(**{**values, **fields})


def _call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}


def _of_response(written: Sequence[ChatMessage], rows: Sequence[ChatMessage]) -> StepMetrics:
    """Return a response's metrics. They are in its last row (MSG-06), except the duration, which its texts have."""
    texts = [row for row in written if row.type == "text"]
    known = next((row for row in reversed(rows) if row.total_tokens is not None), rows[-1])
    return StepMetrics(
        duration_ms=texts[0].duration_ms if texts else None,
        model_name=written[0].model,
        provider=written[0].provider,
        input_tokens=known.input_tokens,
        output_tokens=known.output_tokens,
        total_tokens=known.total_tokens,
        cache_tokens=_sum(known.cache_read_tokens, known.cache_write_tokens),
        cache_read_tokens=known.cache_read_tokens,
        cache_write_tokens=known.cache_write_tokens,
        first_token_latency_ms=known.first_token_latency_ms,
    )


def _of_tool(row: ChatMessage) -> StepMetrics:
    return StepMetrics(
        duration_ms=row.duration_ms,
        model_name=row.model,
        provider=row.provider,
        tool_exec_time_ms=row.duration_ms,
        tool_exec_start_at=row.timestamp.isoformat() if row.duration_ms is not None else None,
        tool_exec_end_at=row.ended_at.isoformat() if row.ended_at else None,
    )


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _once(rows: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    return tuple({row.pk: row for row in rows}.values())
