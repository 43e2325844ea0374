"""The demo agent summarizes a conversation instead of obeying the keywords in it."""

from __future__ import annotations

import pytest

from agents.events import TextDelta
from agents.messages import Message, Text
from agents.providers.base import Request
from agents.providers.demo.provider import DemoProvider
from chat.runner import compactor


@pytest.mark.parametrize("keyword", ["slow", "echo hi", "markdown"])
async def test_a_request_for_a_summary_is_recognized(keyword: str) -> None:
    """CTX-07: the demo agent ignores keywords in the conversation and in the request for a summary."""
    conversation = f"## User (Ana)\n{keyword}\n\n## Assistant\nA long\n\nanswer\n\n## User\nAnd the second question?"
    first = f"<conversation>\n{conversation}\n</conversation>\n\nSummarize the conversation."
    text = await summarized(first)
    assert text.splitlines()[2:] == [f"- Ana: {keyword}", "- And the second question?"]
    merged = await summarized(
        f"<summary_so_far>\n{text}\n</summary_so_far>\n\n<conversation>\n## User\n多谢\n</conversation>\n\nMerge them."
    )
    assert merged.splitlines()[2:] == [f"- Ana: {keyword}", "- And the second question?", "- 多谢"]
    assert merged.startswith("演示智能体")


async def summarized(asked: str) -> str:
    request = Request("demo", (Message("user", (Text(asked),)),), system=compactor.INSTRUCTIONS)
    events = [event async for event in DemoProvider(tokens_per_second=0).stream(request)]
    return "".join(event.text for event in events if isinstance(event, TextDelta))
