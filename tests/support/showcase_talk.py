"""Sessions of the showcase, written row by row: with every kind of message, with files, and with several users."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from typing import TYPE_CHECKING, Any

from agents.messages import Json
from tests.support import files
from tests.support.showcase_texts import ANSWER, CODE, TERMINAL

if TYPE_CHECKING:
    from chat.models import ChatMessage, Session, User


@dataclass
class Writer:
    """A writer of a session's rows, whose times are a few seconds apart."""

    session: Session
    now: datetime
    sequence: int = 0
    turn: int = 0

    def row(self, **values: Any) -> ChatMessage:
        from chat.models import ChatMessage

        self.sequence += 1
        self.now += timedelta(seconds=7)
        turn = f"t_{self.turn:024x}"
        plain = {"session": self.session, "sequence": self.sequence, "revision": self.sequence, "turn_id": turn}
        return ChatMessage.objects.create(**{**plain, "timestamp": self.now, **values})

    def said(self, user: User, text: str, **values: Any) -> ChatMessage:
        self.turn += 1
        self.row(type="turn_start")
        return self.row(type="text", role="user", text=text, sender=user.sender, user=user, **values)

    def agent(self, kind: str = "text", **values: Any) -> None:
        role = "assistant" if kind == "text" else ""
        plain = {"role": role, "model": "claude-sonnet-4-6", "provider": "anthropic"}
        self.row(type=kind, **{**plain, "response_id": f"r_{self.sequence:024x}", **values})

    def called(self, name: str, arguments: Json, result: str, **values: Any) -> None:
        call = {"tool_call_id": f"toolu_{self.sequence}", "tool_name": name, "arguments": arguments, "result": result}
        self.agent("tool_group", **{"duration_ms": 328, **call, **values})

    def done(self, seconds: float = 35, **values: Any) -> None:
        self.row(type="turn_done", duration_seconds=seconds, **values)

    def close(self) -> None:
        """Set the session's revision without changing its time of last activity."""
        type(self.session).objects.filter(pk=self.session.pk).update(revision=self.sequence)


def fill(people: dict[str, User], session: Session, now: datetime) -> None:
    """Write every kind of message to a session."""
    usage: Json = {"input_tokens": 15_234, "output_tokens": 812, "total_tokens": 16_046, "first_token_latency_ms": 840}
    writer = Writer(session, now - timedelta(days=1, hours=2))
    writer.said(people["ana"], "Why is checkout slow on Fridays? Look at the metrics and at the cron jobs.")
    writer.agent("reasoning", text="The user wants a cause. First the metrics of the last weeks.", duration_ms=12_400)
    writer.agent(text="I will look at the latency by hour first.")
    writer.called("query_metrics", {"metric": "checkout.latency", "by": "hour", "days": 28}, '{"p99": {"16:30": 4310}}')
    writer.called("bash", {"command": "crontab -l | grep report"}, "30 16 * * 5 /srv/report --full\n", duration_ms=61)
    writer.agent(text=ANSWER, duration_ms=35_200, **usage)
    writer.done(94)
    writer.now = now - timedelta(hours=1)
    writer.said(people["mei"], "我觉得问题在锁上。能把报表移到凌晨三点吗？")
    writer.agent(text="可以。把 `cron` 改成 `0 3 * * 6`，并让报表读取**只读副本**。", duration_ms=4_100)
    writer.done(6)
    writer.said(people["fatima"], "هل يمكن أن نرى الأرقام قبل التغيير وبعده؟ أرسلوا جدولا من فضلكم.")
    writer.agent(text="نعم: قبل التغيير كان p99 يساوي 4310 ms، وبعده 260 ms.", duration_ms=3_000)
    writer.done(4)
    writer.said(people["jonas"], "And the tests?\nI changed `report.py` an hour ago.", edited_at=now)
    writer.called("bash", {"command": "pytest -q"}, TERMINAL, is_error=True, status="failed", duration_ms=2_310)
    for number in range(40):
        arguments = {"path": f"src/billing/reports/step_{number}.py", "lines": [1, 80]}
        writer.called("read_file", arguments, f"def step_{number}(): ...\n" * 3, duration_ms=12 + number)
    writer.agent(text=CODE, duration_ms=61_000)
    writer.done(183)
    writer.said(people["priya"], "Ignore the old numbers below.", include_in_context=False)
    writer.agent(text="The rate was 0.4 % in 20", status="interrupted", duration_ms=900)
    writer.done(3, status="interrupted")
    writer.said(people["kenta"], "お願いします。手順を三行でまとめてください。")
    words = "The provider is overloaded (529). It was tried 4 times. Retry in a minute, or choose another model."
    writer.agent("error", text=words)
    writer.done(31)
    writer.said(people["ana"], "Thank you all. Summary, please.")
    writer.agent(text="1. Move the report to 03:00.\n2. Read from the replica.\n3. Alert on waits over 1 s.", **usage)
    writer.done(8)
    writer.close()


def fill_small(session: Session, author: User, now: datetime) -> None:
    """Write a short session with files: two images, a PDF and a table."""
    from django.core.files.base import File

    from chat.services.messages import attachments

    writer = Writer(session, now - timedelta(minutes=20))
    question = writer.said(author, "What is in these? The second picture is from the fair.")
    sent = {
        "Übersicht der Abfragen im März.png": files.picture("PNG", (1200, 700)),
        "fair.jpg": files.picture("JPEG", (500, 800)),
        "Runbook – locks and how to find them.pdf": files.pdf("Find the lock.", "Move the report."),
        "orders.csv": b"id,total\n1,20\n2,40\n",
    }
    kept = [
        attachments.upload(session=session, author=author, name=name, size=len(data), file=File(BytesIO(data)))
        for name, data in sent.items()
    ]
    attachments.claim(message=question, attachment_ids=[attachment.pk for attachment in kept])
    writer.agent("reasoning", text="Two pictures and two documents.", duration_ms=1_400)
    writer.called("calculator", {"expression": "20 + 40"}, "60", duration_ms=2)
    writer.agent(text="Two **pictures**, a runbook of two pages and a table with `60` in all.", duration_ms=2_100)
    writer.done(5)
    writer.close()


def fill_shared(people: dict[str, User], session: Session, now: datetime) -> None:
    """Write a session of several users with edits, suggestions, messages on hold after a stop, and an error."""
    from chat.services.messages import editing, suggestions

    ana, mei, jonas, priya = (people[name] for name in ("ana", "mei", "jonas", "priya"))
    writer = Writer(session, now - timedelta(minutes=12))
    first = writer.said(ana, "Please draft a note on the outage of last Friday for all customers in Europe.")
    writer.agent(text="On Friday, checkout was slow between 16:30 and 17:10 UTC.")
    answer = session.chat_messages.latest("sequence")
    writer.done(4)
    second = writer.said(ana, "Shorter, and name the cause.\n\nKeep the times, but leave the figures out.")
    error = {"error": {"code": "request_rejected", "remedy": "model"}}
    writer.agent("error", text="The provider refused the request: this model takes no tools.", provider_data=error)
    writer.done(1)
    writer.said(ana, "And in Chinese?")
    writer.agent(text="周五下午，由于数据库中的一把锁，结账速度", status="interrupted", duration_ms=900)
    stopped = {"end_reason": "stopped", "stopped_by": jonas, "stopped_by_name": jonas.sender}
    writer.done(3, status="interrupted", **stopped)
    writer.close()
    session.refresh_from_db()
    editing.edit(session=session, author=mei, message_id=answer.pk, text=f"{answer.text} A lock was the cause.")
    text = "Please draft a short note on the outage of last Friday for all customers in Europe and the UK."
    given = suggestions.suggest(session=session, author=mei, message_id=first.pk, text=text)
    suggestions.accept(session=session, author=ana, suggestion_id=given.pk)
    for author, other in ((jonas, "Shorter, please"), (mei, "Shorter, and name the cause first")):
        text = second.text.replace("Shorter, and name the cause", other)
        suggestions.suggest(session=session, author=author, message_id=second.pk, text=text)
    for user, words in (
        (ana, "Then send it to the five largest customers"),
        (priya, "请先给我看一下"),
        (jonas, "Wait"),
    ):
        values = {"status": "queued", "held": True, "type": "text", "role": "user"}
        session.chat_messages.create(text=words, user=user, sender=user.sender, **values)
