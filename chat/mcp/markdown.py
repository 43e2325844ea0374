"""A session as Markdown for models: its messages, tool calls and their results."""

from __future__ import annotations

from collections.abc import Sequence

from chat.projections.fences import escaped, fenced
from chat.projections.steps import Step

# In characters. A page ends before the step that does not fit.
PAGE_CHARS = 40_000


def page_in_markdown(steps: Sequence[Step]) -> tuple[str, int | None]:
    """Return the steps that fit on a page, and the `sequence` of the last one, or None if all steps fit."""
    parts: list[str] = []
    size = 0
    for step, before in zip(steps, (None, *steps), strict=False):
        part = _step(step)
        if before is not None and size + len(part) > PAGE_CHARS:
            return "\n\n".join(parts), before.sequence
        parts.append(part if len(part) <= PAGE_CHARS else _cut_part(part, step))
        size += len(part)
    return "\n\n".join(parts), None


def _step(step: Step) -> str:
    if step.role == "tool":
        return f"### tool result: {escaped(step.name or '')}\n\n{fenced(step.content or '', 'text')}"
    calls = [call["function"] for call in step.tool_calls or []]
    parts = [f"### {step.role}"]
    if step.content:
        parts.append(step.content)
    parts += [f"Called {escaped(call['name'])}:\n\n{fenced(call['arguments'], 'json')}" for call in calls]
    return "\n\n".join(parts)


def _cut_part(text: str, step: Step) -> str:
    left = len(text) - PAGE_CHARS
    return f'{text[:PAGE_CHARS]}\n\n[{left:,} more characters: read them with format "steps"; id {step.id}]'
