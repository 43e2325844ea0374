"""The steps that may have changed, given the rows that have changed. Some of them may in fact be the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chat.models import CONTENT_TYPES, ChatMessage, MessageType
from chat.projections.context import is_in_context
from chat.projections.steps import AT_WORK, Sourced, ids_of

# The types of rows with which a step can begin.
HEADS = (MessageType.TEXT, MessageType.TOOL_GROUP)


# The number of groups of rows beside a change that count as changed, too. After a change by users, adjacent rows may
# belong to other steps than before. Agents only add rows at the end.
BY_PEOPLE = 1
BY_AGENTS = 0


def affected_steps(
    found: Iterable[Sourced], rows: Iterable[ChatMessage], changed: Sequence[ChatMessage], reach: int
) -> list[Sourced]:
    """Return the steps that may have changed. `rows` are the live rows from which the steps were made, in order.

    A removed row was adjacent to a row that has moved since, or to the last row. Calls with the same call id affect
    each other, because repeated ids are renamed.
    """
    near = _near(rows, changed, reach)
    return [each for each in found if any(row.pk in near for row in each.rows)]


def gone_ids(found: Iterable[Sourced], rows: Sequence[ChatMessage], changed: Sequence[ChatMessage]) -> list[str]:
    """Return the ids of steps that may have existed before users made a change, and do not exist now."""
    near = _near(rows, changed, BY_PEOPLE)
    there = {each.step.id for each in found}
    heads = [row for row in (*changed, *(row for row in rows if row.pk in near)) if row.type in HEADS]
    return list(dict.fromkeys(id for row in heads for id in ids_of(row) if id not in there))


def _near(rows: Iterable[ChatMessage], changed: Sequence[ChatMessage], reach: int) -> set[str]:
    """Return the ids of the rows in changed groups, and in `reach` groups before and after them."""
    hot = {row.pk for row in changed}
    names = {row.tool_call_id for row in changed if row.tool_call_id}
    runs = _runs(rows)
    is_hot = [any(row.pk in hot or row.tool_call_id in names or row.status in AT_WORK for row in run) for run in runs]
    is_hot[-1] |= any(row.removed_at is not None for row in changed)
    near = (run for index, run in enumerate(runs) if any(is_hot[max(0, index - reach) : index + reach + 1]))
    return {row.pk for run in near for row in run}


def _runs(rows: Iterable[ChatMessage]) -> list[list[ChatMessage]]:
    """Return groups of rows. Each begins with a row of the context, followed by rows that users could include in it.

    The first group has the rows before the first row of the context.
    """
    runs: list[list[ChatMessage]] = [[]]
    for row in rows:
        if row.type not in CONTENT_TYPES:
            continue
        if is_in_context(row):
            runs.append([])
        runs[-1].append(row)
    return runs
