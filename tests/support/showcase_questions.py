"""Two sessions of the showcase in which an agent asks users: one that waits for all answers, and one with answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from agents.messages import Json
from tests.support.showcase_talk import Writer

if TYPE_CHECKING:
    from chat.models import Session, User

PLAN = """1. Put the report into **maintenance mode** and tell #payments.
2. Move the cron job: `30 16 * * 5` becomes `0 3 * * 6`.
3. Read from the replica, and compare ten totals with the primary.

| step | who | minutes |
| --- | --- | --- |
| 1 | Ana | 5 |
| 2–3 | agent | 20 |
"""
SELECTION: Json = {
    "question": "Which regions should the report cover?",
    "multiple": True,
    "choices": [
        {"id": "eu", "label": "Europe", "description": "31 countries, in euros"},
        {"id": "me", "label": "الشرق الأوسط", "description": "12 countries, each in its own currency"},
        {"id": "jp", "label": "日本"},
    ],
}
CONFIRMATION: Json = {
    "question": "Drop the table report_2019?",
    "details": "It has **1.2 million rows** and was last read in March. There is a backup of last night.",
    "confirm": "Drop the table",
    "decline": "Keep it",
    "danger": True,
}
ACTIONS: Json = {
    "question": "The report is ready. What next?",
    "actions": [
        {"id": "send", "label": "Send it to the team", "description": "As a PDF, to the five people of payments"},
        {"id": "check", "label": "Check the totals again"},
        {"id": "stop", "label": "Leave it here"},
    ],
}
FEEDBACK: Json = {
    "question": "What do you think of these drafts?",
    "items": [
        {"id": "a", "label": "The short one", "description": "“Checkout was slow on Friday. It is not any more.”"},
        {"id": "b", "label": "The long one"},
    ],
}
FORM: Json = {
    "title": "Before I book the maintenance window",
    "description": "I found two slots next week.",
    "fields": [
        {"id": "title", "label": "Name of the window", "required": True, "default": "Report to replica"},
        {"id": "why", "label": "Reason", "type": "long_text", "help": "Customers read this on the status page."},
        {"id": "people", "label": "Customers affected", "type": "number"},
        {"id": "day", "label": "Day", "type": "date", "required": True},
        {"id": "quiet", "label": "Tell customers by e-mail?", "type": "yes_no", "required": True},
        {"id": "level", "label": "Severity", "type": "choice", "options": ["Low", "Medium", "High"]},
        {"id": "teams", "label": "Teams to invite", "type": "choices", "options": ["Payments", "Ops", "顧客サポート"]},
    ],
    "submit": "Book it",
}
REVIEW: Json = {"title": "Move the report off the primary", "plan": PLAN}
COMMAND: Json = {"command": "crontab -l | sed 's/30 16 \\* \\* 5/0 3 * * 6/' | crontab -", "timeout_seconds": 30}
PAGE: Json = {
    "url": "https://status.example.org/api/v2/incidents?from=2026-11-13&to=2026-11-20&page=1",
    "note": "All incidents of the week,\nto compare with the latency.",
}
ASKED: list[tuple[str, str, Json, Any]] = [
    ("approval", "web_fetch", PAGE, {"approved": True, "scope": "session"}),
    ("selection", "selection", SELECTION, ["eu", "jp"]),
    ("confirmation", "confirmation", CONFIRMATION, {"confirmed": False}),
    ("plan_review", "plan_review", REVIEW, {"decision": "edit", "plan": f"{PLAN}\n4. Report back."}),
    ("feedback", "feedback", FEEDBACK, {"a": "Fine, but name the cause.", "b": "很长。删掉第二段。"}),
    (
        "form",
        "form",
        FORM,
        {"title": "Report to replica", "people": 120, "day": "2026-12-01", "quiet": False, "teams": ["Ops"]},
    ),
    ("action_selection", "action_selection", ACTIONS, "check"),
    ("approval", "bash", COMMAND, {"approved": False, "scope": "once", "comment": "Not on a Friday, please."}),
]


def fill_waiting(session: Session, author: User, now: datetime) -> None:
    """Write a session that waits for every kind of answer."""
    from chat.models import SessionRun

    SessionRun.objects.filter(session=session).update(state="waiting", turn_id=f"t_{1:024x}", waiting_since=now)
    writer = Writer(session, now - timedelta(minutes=9))
    writer.said(author, "Move the Friday report, and ask me whatever you need.")
    writer.agent(text="I need a few decisions first.")
    for kind, name, arguments, _answer in ASKED:
        writer.called(name, arguments, "", status="waiting", question=kind, duration_ms=None)
    writer.close()


def fill_answered(session: Session, author: User, other: User, now: datetime) -> None:
    """Write a session in which two users have answered. The last question was skipped."""
    writer = Writer(session, now - timedelta(minutes=40))
    writer.said(author, "Move the Friday report, and ask us whatever you need.")
    for number, (kind, name, arguments, answer) in enumerate(ASKED):
        by = (author, other)[number % 2]
        who = {"answered_by": by, "answered_by_name": by.sender, "answered_at": writer.now + timedelta(seconds=30)}
        refused = kind == "approval" and not answer["approved"]
        ended: Json = {"status": "failed", "is_error": True} if refused else {}
        result = "[Not run: refused]" if refused else "OK"
        writer.called(name, arguments, result, question=kind, answer=answer, **who, **ended)
    writer.called("confirmation", CONFIRMATION, "[Not answered]", question="confirmation", status="interrupted")
    writer.done(4, status="interrupted")
    writer.close()
