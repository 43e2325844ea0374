"""The answer of an agent that was given a task."""

from __future__ import annotations

from chat.models import ChatMessage, MessageType
from chat.projections.subsessions import answer_of


def test_citations_are_addresses() -> None:
    """RUN-18: the numbers of the subsession mean other pages for the caller, so the answer has the addresses."""
    found = [{"number": number, "title": "T", "url": f"https://{number}.example"} for number in (1, 2)]
    text = "Noon [1], six [1, 2], [2,9] and [8, 9]. `a[1]`, $[1, 2]$\n```\na = [1]\n```"
    row = ChatMessage(type=MessageType.TEXT, role="assistant", text=text, sources=found, turn_id="t")
    answer = answer_of([row, ChatMessage(type=MessageType.TURN_DONE, status="complete", turn_id="t")])
    assert answer.text == (
        "Noon (https://1.example), six (https://1.example)(https://2.example), (https://2.example)[9] and [8, 9]. "
        "`a[1]`, $[1, 2]$\n```\na = [1]\n```"
    )
