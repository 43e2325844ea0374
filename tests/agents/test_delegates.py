"""Tools by which an agent gives tasks to other agents."""

from __future__ import annotations

import pytest

from agents.delegates import MAX_TASK_LENGTH, delegate
from agents.messages import ToolCall


@pytest.mark.parametrize("task", ["", "   ", "\n\t\u3000", "x" * (MAX_TASK_LENGTH + 1), None, 5])
def test_task_that_cannot_be_a_message_is_refused(task: object) -> None:
    """RUN-18: the calling agent reads what is wrong, and no session begins. Vendors refuse a blank message."""
    problem = delegate("researcher", "Researcher").problem(ToolCall("c", "agent__researcher", {"task": task}))
    assert problem is not None
    assert "task: " in problem.content


def test_task_with_text_is_accepted() -> None:
    """RUN-18: a task may have any text, with blank lines around it."""
    call = ToolCall("c", "agent__researcher", {"task": "\n\nFind sources.\n"})
    assert delegate("researcher", "Researcher").problem(call) is None
