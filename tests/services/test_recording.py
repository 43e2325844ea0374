"""What a run writes: fenced by its claim, in one transaction, with deltas folded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from chat.bus.events import ChatEvent, MessageChanged, TextAppended, UsageChanged
from chat.models import ChatMessage, MessageDelta, Session, SessionRun, User
from chat.runs import lease
from chat.runs.changes import Change, CloseTurn, InsertMessage, RecordUsage, UpdateMessage
from chat.runs.lease import Claim
from chat.services.messages.sending import send_message, withdraw
from chat.services.runs.recording import Job, Outcome, PendingText, Recorded, record
from chat.services.sessions.lifecycle import create_session, set_model

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker() -> str:
    return lease.register_worker()


def begin(ana: User, worker: str) -> Claim:
    """Return a session with an open turn and a claim."""
    session = create_session(owner=ana, title="Plan")
    send_message(session=session, author=ana, text="Hi")
    return next(claim for claim in lease.claim(worker, 100) if claim.session_id == session.pk)


def next_number(claim: Claim) -> int:
    return SessionRun.objects.get(pk=claim.session_id).written + 1


def write(claim: Claim, *changes: Change, texts: Sequence[tuple[str, int, str]] = ()) -> Recorded:
    pending = [PendingText(claim, *text) for text in texts]
    return record([Job(claim, next_number(claim), changes)], pending).jobs[0]


def insert(message_id: str, text: str = "", **fields: Any) -> InsertMessage:
    values = {"type": "text", "role": "assistant", "status": "streaming", "text": text, **fields}
    return InsertMessage(message_id, "text_delta", values)


def end(message_id: str) -> UpdateMessage:
    return UpdateMessage(message_id, "message_updated", {"status": "complete"}, compact=True)


DONE = InsertMessage("m_done", "turn_done", {"type": "turn_done"})


def rows(claim: Claim) -> list[tuple[int, int, str, str]]:
    found = ChatMessage.objects.filter(session=claim.session_id, sequence__isnull=False).order_by("sequence")
    return [(row.sequence or 0, row.revision, row.type, row.text) for row in found]


def test_changes_get_places_and_revisions_in_order(ana: User, worker: str) -> None:
    """MSG-03, LIVE-02: places have no gaps, and each event has the revision that it made."""
    claim = begin(ana, worker)
    result = write(claim, insert("m_a", "Hel"), end("m_a"), DONE)
    assert rows(claim) == [
        (1, 1, "turn_start", ""),
        (2, 2, "text", "Hi"),
        (3, 4, "text", "Hel"),
        (4, 5, "turn_done", ""),
    ]
    assert [event.revision for event in result.events if isinstance(event, MessageChanged)] == [3, 4, 5]
    assert Session.objects.get(pk=claim.session_id).revision == 5


def test_text_is_folded_when_its_message_ends(ana: User, worker: str) -> None:
    """MSG-01: at the message's end, the first text, the delta rows and the last text are joined in order, and no delta
    row stays."""
    claim = begin(ana, worker)
    write(claim, insert("m_a", "ab"), texts=[("m_a", 2, "cd")])
    record([], [PendingText(claim, "m_a", 4, "ef")])
    assert list(MessageDelta.objects.values_list("offset", "text")) == [(2, "cd"), (4, "ef")]
    write(claim, end("m_a"), texts=[("m_a", 6, "gh")])
    assert ChatMessage.objects.get(pk="m_a").text == "abcdefgh"
    assert not MessageDelta.objects.exists()


def test_message_may_begin_and_end_in_one_batch(ana: User, worker: str) -> None:
    """MSG-01: a message that begins and ends in one batch is written once."""
    claim = begin(ana, worker)
    write(claim, insert("m_a", "ab"), end("m_a"), insert("m_b", "x"), texts=[("m_a", 2, "cd"), ("m_b", 1, "y")])
    assert [text for _, _, _, text in rows(claim)][2:] == ["abcd", "x"]
    assert list(MessageDelta.objects.values_list("message_id", "text")) == [("m_b", "y")]


def fenced_claims(claim: Claim) -> list[Claim]:
    """Return claims of other epochs, of another worker in the same epoch, and of an unknown session."""
    return [
        replace(claim, epoch=claim.epoch - 1),
        replace(claim, epoch=claim.epoch + 1),
        replace(claim, worker_id="w_another"),
        replace(claim, session_id="s_none"),
    ]


def test_claim_that_was_lost_writes_nothing(ana: User, worker: str) -> None:
    """RUN-15: a lost claim writes neither rows nor text, whatever else is in the batch."""
    claim, other = begin(ana, worker), begin(ana, worker)
    write(claim, insert("m_a", "ab"))
    before = rows(claim)
    for zombie in fenced_claims(claim):
        jobs = [Job(zombie, 2, [end("m_a"), CloseTurn()]), Job(other, 1, [insert("m_o" * 3)])]
        with transaction.atomic():
            batch = record(jobs, [PendingText(zombie, "m_a", 2, "late")])
            assert [result.outcome for result in batch.jobs] == [Outcome.FENCED, Outcome.WRITTEN]
            assert batch.texts == [Outcome.FENCED]
            assert batch.jobs[0].events == []
            assert rows(claim) == before
            assert not MessageDelta.objects.exists()
            assert len(rows(other)) == 3
            transaction.set_rollback(True)


def test_job_of_another_worker_with_the_same_epoch_is_not_taken_for_written(ana: User, worker: str) -> None:
    """RUN-15: after a failover an epoch may be used twice, so job numbers count only for the present claim."""
    claim = begin(ana, worker)
    write(claim, insert("m_a"))
    lost = Job(replace(claim, worker_id="w_another"), 1, [insert("m_b")])
    assert record([lost], []).jobs[0].outcome is Outcome.FENCED


def test_claim_that_was_given_back_writes_nothing(ana: User, worker: str) -> None:
    """RUN-15: a claim that was given back cannot write, although its epoch is still the same."""
    claim = begin(ana, worker)
    lease.give_back(claim)
    assert write(claim, insert("m_a")).outcome is Outcome.FENCED


def test_session_that_was_deleted_fences_its_run(ana: User, worker: str) -> None:
    """RUN-15: the run of a deleted session is fenced without an error."""
    claim = begin(ana, worker)
    Session.objects.filter(pk=claim.session_id).delete()
    batch = record([Job(claim, 1, [insert("m_a")])], [PendingText(claim, "m_a", 0, "x")])
    assert (batch.jobs[0].outcome, batch.texts) == (Outcome.FENCED, [Outcome.FENCED])


def test_closed_turn_releases_the_session(ana: User, worker: str) -> None:
    """RUN-01: when its turn is closed, the session is idle and without an owner, and all its requests are served."""
    claim = begin(ana, worker)
    assert write(claim, DONE, CloseTurn()).next_turn == ""
    run = SessionRun.objects.get(pk=claim.session_id)
    assert (run.state, run.turn_id, run.owner, run.done) == ("idle", "", None, run.wanted)
    assert write(claim, insert("m_late")).outcome is Outcome.FENCED


def test_queued_messages_begin_the_next_turn(ana: User, worker: str) -> None:
    """RUN-06: the transaction that ends the turn begins the next one, and the claim continues."""
    claim = begin(ana, worker)
    session = Session.objects.get(pk=claim.session_id)
    for text in ("one", "two"):
        send_message(session=session, author=ana, text=text)
    turn_id = write(claim, DONE, CloseTurn()).next_turn
    run = SessionRun.objects.get(pk=session.pk)
    assert (run.state, run.turn_id, run.owner_id, run.epoch) == ("running", turn_id, worker, claim.epoch)
    assert [(kind, text) for _, _, kind, text in rows(claim)] == [
        ("turn_start", ""),
        ("text", "Hi"),
        ("turn_done", ""),
        ("turn_start", ""),
        ("text", "one"),
        ("text", "two"),
    ]
    assert {row.turn_id for row in ChatMessage.objects.filter(text__in=["one", "two"])} == {turn_id}


def test_turn_continues_when_the_queued_message_is_withdrawn(ana: User, worker: str) -> None:
    """RUN-06: if the message for which the turn was to end is withdrawn, the turn continues to answer the first
    question."""
    claim = begin(ana, worker)
    session = Session.objects.get(pk=claim.session_id)
    sent = send_message(session=session, author=ana, text="Never mind")
    withdraw(session=session, author=ana, message_id=sent.id)
    before, turn_id = rows(claim), SessionRun.objects.get(pk=session.pk).turn_id
    result = write(claim, DONE, CloseTurn(for_queued=True))
    assert (result.next_turn, result.events, result.outcome) == (turn_id, [], Outcome.WRITTEN)
    assert rows(claim) == before
    send_message(session=session, author=ana, text="But")
    assert write(claim, DONE, CloseTurn(for_queued=True)).next_turn not in ("", turn_id)


def test_one_bad_job_takes_its_batch_with_it(ana: User, worker: str) -> None:
    """RUN-15: one bad job rolls back its whole batch, so the writer has to repeat the jobs one by one."""
    good, bad = begin(ana, worker), begin(ana, worker)
    jobs = [Job(good, 1, [insert("m_a", "ab")]), Job(bad, 1, [insert("m_b", status="nonsense")])]
    with pytest.raises(IntegrityError), transaction.atomic():
        record(jobs, [])
    assert len(rows(good)) == len(rows(bad)) == 2


def test_usage_is_summed_in_the_session(ana: User, worker: str) -> None:
    """RUN-04, RUN-05: the session has the context size of the last response and the sum of all responses' tokens."""
    claim = begin(ana, worker)
    session = Session.objects.get(pk=claim.session_id)
    first = RecordUsage(session.provider, session.model, 700, 1000, 800)
    result = write(claim, first, RecordUsage(session.provider, session.model, 900, 1000, 950))
    session.refresh_from_db()
    assert (session.total_tokens, session.context_used, session.context_window) == (1750, 900, 1000)
    used = [event for event in result.events if isinstance(event, UsageChanged)]
    assert [(event.context_percent, event.session_total_tokens) for event in used] == [(70.0, 800), (90.0, 1750)]


def test_window_is_that_of_the_model_chosen_now(ana: User, worker: str) -> None:
    """RUN-05, RUN-16: the last response of the earlier model does not change the window of the present one."""
    claim = begin(ana, worker)
    Session.objects.filter(pk=claim.session_id).update(provider="new", model="large", context_window=5000)
    result = write(claim, RecordUsage("old", "small", 900, 1000, 950))
    session = Session.objects.get(pk=claim.session_id)
    assert (session.model, session.context_used, session.context_window) == ("large", 900, 5000)
    assert [event for event in result.events if isinstance(event, UsageChanged)] == [
        UsageChanged(900, 5000, session.total_tokens, "large")
    ]


def test_model_that_was_not_known_is_kept_once_it_answers(ana: User, worker: str) -> None:
    """RUN-16: a session that began before the server reported its models stores the model when it answers."""
    claim = begin(ana, worker)
    Session.objects.filter(pk=claim.session_id).update(provider="", model="")
    write(claim, RecordUsage("vendor", "large", 10, 1000, 20))
    session = Session.objects.get(pk=claim.session_id)
    assert (session.provider, session.model, session.context_window) == ("vendor", "large", 1000)


def test_last_text_is_published_before_the_end(ana: User, worker: str) -> None:
    """LIVE-01: the last text is published first, then the change that ends the message."""
    claim = begin(ana, worker)
    words = TextAppended("m_a", 2, "cd")
    write(claim, insert("m_a", "ab"))
    result = record([Job(claim, 2, [end("m_a")], [words])], [PendingText(claim, "m_a", 2, "cd")]).jobs[0]
    assert result.events[0] == words
    assert isinstance(result.events[1], MessageChanged)


def test_batch_is_published_on_commit(
    ana: User, worker: str, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    """LIVE-01: events are published in the order of the jobs after the commit, also if the answer to the COMMIT was
    lost."""
    published: list[tuple[str, list[ChatEvent]]] = []
    monkeypatch.setattr("chat.bus.publisher.publish", lambda *args: published.append(args))
    one, two = begin(ana, worker), begin(ana, worker)
    jobs = [Job(one, 1, [insert("m_a", "a")]), Job(replace(two, epoch=99), 1, [DONE]), Job(two, 1, [insert("m_b")])]
    with django_capture_on_commit_callbacks(execute=True):
        first = record(jobs, [])
        assert published == []
    expected = [(one.session_id, first.jobs[0].events), (two.session_id, first.jobs[2].events)]
    assert published == expected
    with django_capture_on_commit_callbacks(execute=True):
        again = record(jobs, [])
    assert [result.outcome for result in again.jobs] == [Outcome.WRITTEN, Outcome.FENCED, Outcome.WRITTEN]
    assert published == expected * 2


def test_cost_of_writing_text_does_not_grow_with_its_length(ana: User, worker: str) -> None:
    """MSG-01: a flush adds one row. The message's own row is written only at its beginning and its end."""
    claim = begin(ana, worker)
    write(claim, insert("m_a", "x" * 10))

    def flush(offset: int) -> list[str]:
        return statements(lambda: record([], [PendingText(claim, "m_a", offset, "y" * 10)]))

    first = flush(10)
    write(claim, texts=[("m_a", 20, "z" * 100_000)])
    assert flush(100_020) == first
    assert not [one for one in first if one.startswith(("UPDATE", "DELETE"))]


def test_many_sessions_are_flushed_at_once(ana: User, worker: str) -> None:
    """MSG-01: flushing ten sessions takes as many queries as flushing one."""
    claims = [begin(ana, worker) for _ in range(10)]
    for number, claim in enumerate(claims):
        write(claim, insert(f"m_{number}", "x"))

    def flush(some: Sequence[Claim], offset: int) -> int:
        texts = [PendingText(claim, f"m_{number}", offset, "y") for number, claim in enumerate(some)]
        return len(statements(lambda: record([], texts)))

    assert flush(claims[:1], 1) == flush(claims, 2)


def statements(work: Callable[[], object]) -> list[str]:
    """Return the first words of every statement."""
    found: list[str] = []

    def noted(execute: Callable[..., object], sql: str, *args: object) -> object:
        if "SAVEPOINT" not in sql:
            found.append(" ".join(sql.split()[:3]))
        return execute(sql, *args)

    with connection.execute_wrapper(noted):
        work()
    return found


def test_model_switch_is_a_change_for_everyone(ana: User, worker: str) -> None:
    """RUN-16, LIVE-02: a model switch has its own revision, also while the agent works.

    Choosing the same model again has none.
    """
    claim = begin(ana, worker)
    session = Session.objects.get(pk=claim.session_id)
    Session.objects.filter(pk=session.pk).update(model="another")
    for _ in range(2):
        set_model(session=session, author=ana, provider=session.provider, model=session.model)
    assert Session.objects.get(pk=session.pk).revision == 3
