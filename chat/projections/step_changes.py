"""Which steps may be others than before, given the rows that have changed: rather one too many than one too few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chat.models import ChatMessage, MessageType
from chat.projections.context import speaks
from chat.projections.steps import AT_WORK, Sourced, ids_of

# What a step can begin with.
HEADS = (MessageType.TEXT, MessageType.TOOL_GROUP)
SAID = (*HEADS, MessageType.REASONING)


# Rows beside a change that people made may belong to other steps than before; agents only add rows at the end.
BY_PEOPLE = 1
BY_AGENTS = 0


def affected(
    found: Iterable[Sourced], rows: Iterable[ChatMessage], changed: Sequence[ChatMessage], reach: int
) -> list[Sourced]:
    """Pick the steps that may have changed. `rows` are the live ones that they were made of, in order.

    What is removed was beside a row that has another place now, or beside the last one. A call is named after others
    that are called alike.
    """
    near = _near(rows, changed, reach)
    return [each for each in found if any(row.pk in near for row in each.rows)]


def gone(found: Iterable[Sourced], rows: Sequence[ChatMessage], changed: Sequence[ChatMessage]) -> list[str]:
    """Name the steps that may have been there before people changed something, and are not."""
    near = _near(rows, changed, BY_PEOPLE)
    there = {each.step.id for each in found}
    heads = [row for row in (*changed, *(row for row in rows if row.pk in near)) if row.type in HEADS]
    return list(dict.fromkeys(id for row in heads for id in ids_of(row) if id not in there))


def _near(rows: Iterable[ChatMessage], changed: Sequence[ChatMessage], reach: int) -> set[str]:
    """Return the changed rows, and so many of their neighbours that are in the context."""
    hot = {row.pk for row in changed}
    names = {row.tool_call_id for row in changed if row.tool_call_id}
    runs = _runs(rows)
    is_hot = [any(row.pk in hot or row.tool_call_id in names or row.status in AT_WORK for row in run) for run in runs]
    is_hot[-1] |= any(row.removed_at is not None for row in changed)
    near = (run for index, run in enumerate(runs) if any(is_hot[max(0, index - reach) : index + reach + 1]))
    return {row.pk for run in near for row in run}


def _runs(rows: Iterable[ChatMessage]) -> list[list[ChatMessage]]:
    """Put each row that speaks together with those behind it that might; the first run has what comes before."""
    runs: list[list[ChatMessage]] = [[]]
    for row in rows:
        if row.type not in SAID:
            continue
        if speaks(row):
            runs.append([])
        runs[-1].append(row)
    return runs
