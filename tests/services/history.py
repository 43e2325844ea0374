"""Rules for Hypothesis: what users, the agent and crashes can do to a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import rule

from agents.errors import ProviderError
from agents.events import (
    PartDone,
    ReasoningDelta,
    ResponseDone,
    ResponseStarted,
    TextDelta,
    ToolReturned,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    Usage,
)
from agents.messages import Thinking, ToolCall, ToolResult
from chat.models import ChatMessage, MessageStatus, Session, SessionRun
from chat.runs.turn_state import Stopped, TurnEvent, TurnState
from chat.services.deletion import purging
from chat.services.messages import context_inclusion, editing, sending, suggestions
from chat.services.runs import attempts as turn_attempts
from chat.services.runs import compaction, control
from chat.services.sessions import lifecycle
from chat.services.sessions.forking import fork
from tests.services.history_checks import CheckedSession, committed
from tests.support.player import Player
from tests.support.protocol import check_context
from tests.support.rest import check_rest

USAGE = Usage(10, 2)
ENDS: tuple[TurnEvent, ...] = (ResponseDone("end", USAGE), TurnFinished("done"))
THOUGHT: tuple[TurnEvent, ...] = (ReasoningDelta("H"), ReasoningDelta("m"))
SIGNED = PartDone(Thinking("Hm", "scripted", {"signature": "s"}))
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
whichever = st.integers(0, 30)
someone = st.integers(0, 1)


class People(CheckedSession):
    """The actions of two users."""

    def __init__(self) -> None:
        super().__init__()
        self.words = count(1)
        self.purged: set[str] = set()

    @rule(who=someone)
    def send(self, who: int) -> None:
        self.do(sending.send_message, who, text=f"Said {next(self.words)}")

    @rule(at=whichever, who=someone, how=st.sampled_from(["edit", "withdraw"]))
    def change_queued(self, at: int, who: int, how: str) -> None:
        """Edit or withdraw a queued message."""
        while not ChatMessage.objects.queued(self.session.pk).exists():
            self.send(who)
        message_id = self.any_of(at, status=MessageStatus.QUEUED, removed_at__isnull=True)
        if how == "edit":
            self.do(sending.edit_queued, who, message_id=message_id, text=f"Rather {next(self.words)}")
        else:
            self.do(sending.withdraw, who, message_id=message_id)

    @rule(noticed=st.booleans())
    def stop(self, noticed: bool) -> None:
        """Stop the agent; its process learns of it immediately or later."""
        if self.do(control.cancel) and noticed:
            with committed():
                if self.player.begin():
                    self.player.apply(Stopped())

    @rule(at=whichever, who=someone)
    def edit(self, at: int, who: int) -> None:
        self.do(editing.edit, who, message_id=self.row(at), text=f"Edited {next(self.words)}")

    @rule(at=whichever, what=st.sampled_from(["user", "assistant", "system"]))
    def add(self, at: int, what: str) -> None:
        self.do(editing.add, after_id=self.row(at), role=what, text=f"Added {next(self.words)}")

    @rule(at=whichever, failed=st.booleans())
    def edit_tool_call(self, at: int, failed: bool) -> None:
        message_id = self.any_of(at, type="tool_group", removed_at__isnull=True)
        asked = {"n": next(self.words)}
        self.do(editing.edit_tool_call, message_id=message_id, arguments=asked, result="Edited", is_error=failed)

    @rule(at=whichever, included=st.booleans())
    def include(self, at: int, included: bool) -> None:
        self.do(editing.set_included, message_id=self.row(at), included=included)

    @rule(at=whichever, included=st.booleans())
    def include_before(self, at: int, included: bool) -> None:
        done = self.do(context_inclusion.include_before, message_id=self.row(at), included=included)
        if done is not None and not included:
            self.left_out.append(done.since)

    @rule(at=whichever, which=whichever)
    def include_before_again(self, at: int, which: int) -> None:
        since = self.left_out[which % len(self.left_out)] if self.left_out else 0
        self.do(context_inclusion.include_before, message_id=self.row(at), included=True, since=since)

    @rule(at=whichever, event=st.sampled_from(["nothing", "edit", "stop", "send", "crash"]))
    def compact(self, at: int, event: str) -> None:
        """Summarize earlier messages while users act and crashes happen."""
        self.do(compaction.compact)
        if not SessionRun.objects.get(pk=self.session.pk).compacting:
            return
        change, before = self.player.summary(), self.contents()
        if event == "edit":
            self.edit(at, 0)
        elif event == "send":
            self.send(1)
        elif event == "stop":
            self.do(control.cancel)
        with committed():
            if event == "crash":
                self.player.crash(resumes=True)
            if event == "edit" and self.contents() != before:
                assert self.player.claim_compaction()
                self.player.end_compaction(change)
            else:
                self.player.begin()
        if event == "stop":
            assert self.contents() == before

    @rule(at=whichever)
    def undo_compaction(self, at: int) -> None:
        self.do(editing.remove, message_id=self.any_of(at, summarises__isnull=False, removed_at__isnull=True))

    @rule(at=whichever)
    def remove(self, at: int) -> None:
        self.do(editing.remove, message_id=self.row(at))

    @rule(at=whichever)
    def restore(self, at: int) -> None:
        self.do(editing.restore, message_id=self.any_of(at, removed_at__isnull=False))

    @rule(at=whichever)
    def purge(self, at: int) -> None:
        """Purge a message that was removed long ago; messages that a retry withdrew stay."""
        message_id = self.any_of(at, removed_at__isnull=False)
        ChatMessage.objects.filter(pk=message_id).update(removed_at=LONG_AGO)
        with committed():
            purging.purge(before=LONG_AGO + timedelta(days=1))
        if not ChatMessage.objects.filter(pk=message_id).exists():
            self.purged.add(message_id)
            self.committed.pop(message_id, None)

    @rule(at=whichever)
    def retry(self, at: int) -> None:
        self.do(control.retry, message_id=self.row(at))

    @rule(at=whichever)
    def retry_and_undo(self, at: int) -> None:
        """Stop the new answer and undo the retry."""
        done = self.do(control.retry, message_id=self.row(at))
        if done is not None and done.attempt:
            self.stop(noticed=True)
            self.do(turn_attempts.restore_attempt, attempt=done.attempt)

    @rule(at=whichever)
    def restore_attempt(self, at: int) -> None:
        attempts = turn_attempts.attempts_of(self.session)
        if attempts:
            self.do(turn_attempts.restore_attempt, attempt=attempts[at % len(attempts)].id)

    @rule(at=whichever)
    def run_tools(self, at: int) -> None:
        self.do(control.run_tools, message_id=self.any_of(at, type="tool_group", removed_at__isnull=True))

    @rule(at=whichever, who=someone)
    def send_now(self, at: int, who: int) -> None:
        held = self.any_of(at, held=True, removed_at__isnull=True)
        self.do(sending.send_now, who, message_id=None if at % 2 else held)

    @rule(at=whichever, accepts=st.booleans())
    def suggest(self, at: int, accepts: bool) -> None:
        message_id = self.any_of(at, role="user", removed_at__isnull=True)
        made = self.do(suggestions.suggest, 1, message_id=message_id, text=f"Suggested {next(self.words)}")
        if made is not None:
            self.do(suggestions.accept if accepts else suggestions.dismiss, suggestion_id=made.pk)

    @rule(who=someone, what=st.sampled_from(["one", "two", "prompt"]))
    def change_session(self, who: int, what: str) -> None:
        if what == "prompt":
            self.do(lifecycle.set_system_prompt, who, system_prompt=f"Be {next(self.words)}.")
        else:
            self.do(lifecycle.set_model, who, provider="scripted", model=what)

    @rule(at=whichever, text=st.none() | st.just("Instead"), run=st.booleans())
    def fork(self, at: int, text: str | None, run: bool) -> None:
        """Fork; check that the original does not change and that the copy is consistent and can be answered."""
        message_id, before = self.row(at), self.contents()
        made = self.do(fork, 1, message_id=message_id, text=text, run=run)
        assert self.contents() == before
        if made is not None:
            assert (made.parent_session_id, made.parent_message_id) == (self.session.pk, message_id)
            answer(made)
            check_rest(made)

    def contents(self) -> list[dict[str, object]]:
        return [dict(row) for row in ChatMessage.objects.filter(session=self.session).order_by("pk").values()]


class History(People):
    """The actions of users and of the agent, and crashes of the process that runs it."""

    def __init__(self) -> None:
        super().__init__()
        for _ in range(2):
            self.work(2, reported=9, at_once=False, done=True)
            self.answer(ends=True, thinks=True)
        self.edit(1, 0)  # the random histories may contain no other revision

    @rule(ends=st.sampled_from([True, True, True, False]), thinks=st.booleans())
    def answer(self, ends: bool, thinks: bool) -> None:
        thought = (*THOUGHT, SIGNED) if thinks else ()
        self.play(*thought, TextDelta("S"), TextDelta("o"), *(ENDS if ends else ()))

    @rule()
    def think(self) -> None:
        self.play(*THOUGHT)

    @rule(
        calls=st.integers(1, 3),
        reported=st.integers(0, 9),
        at_once=st.booleans(),
        done=st.sampled_from([True, True, False]),
    )
    def work(self, calls: int, reported: int, at_once: bool, done: bool) -> None:
        """Call tools and report some starts and ends: one call after another, or all starts before all ends."""
        made = [ToolCall(f"c{next(self.words)}", "double", {"n": 1}) for _ in range(calls)]
        starts: list[TurnEvent] = [ToolStarted(call) for call in made]
        ends: list[TurnEvent] = [ToolReturned(ToolResult(call.id, "2", is_error=at_once)) for call in made]
        each = [event for pair in zip(starts, ends, strict=True) for event in pair]
        after = (ResponseDone("tool_use", USAGE), *(starts + ends if at_once else each)[:reported])
        self.play(TextDelta("Look"), *map(PartDone, made), *(after if done else ()))

    @rule()
    def finish(self) -> None:
        """End everything that the agent has begun, without beginning anything."""
        self.play()

    @rule()
    def end_for_queued(self) -> None:
        """End the turn between two rounds because messages are queued."""
        with committed():
            state = self.player.state if self.player.begin() else None
            if state is not None and not unfinished(state) and ChatMessage.objects.queued(self.session.pk).exists():
                self.player.apply(TurnFinished("pending"))

    @rule()
    def fail(self) -> None:
        with committed():
            if self.player.begin():
                self.player.apply(TurnFailed(ProviderError("No.")))

    @rule(resumes=st.booleans(), found=st.booleans())
    def crash(self, resumes: bool, found: bool) -> None:
        """Let the process die; another one finds the session immediately or later."""
        with committed():
            self.player.crash(resumes=resumes)
            if found:
                self.player.begin()

    @rule(calls=st.integers(2, 3), reported=st.integers(1, 5), at_once=st.booleans(), resumes=st.booleans())
    def crash_while_tools_run(self, calls: int, reported: int, at_once: bool, resumes: bool) -> None:
        """Let the process die while tools run."""
        self.work(calls, reported=reported, at_once=at_once, done=True)
        self.crash(resumes=resumes, found=True)

    def play(self, *events: TurnEvent) -> None:
        """Let the agent act; if it is in the middle of another action, end that one instead."""
        if events and self.is_idle:
            self.send(0)
        with committed():
            if not self.player.begin() or self.player.state is None:
                return
            model = Session.objects.get(pk=self.session.pk).model
            again = (ResponseStarted(model, "scripted", 1000), *events) if events else ()
            self.player.apply(*(unfinished(self.player.state) or again))


def unfinished(state: TurnState) -> list[TurnEvent]:
    """Return the events that end the current response and its calls."""
    calls = [ToolCall(tool.call_id, tool.name, {"n": 1}) for tool in state.tools]
    begun = {tool.call_id for tool in state.tools if tool.began is not None}
    ends: list[TurnEvent] = []
    if state.open is not None or state.texts:
        ends.append(ResponseDone("tool_use" if calls else "end", USAGE))
    ends += [ToolStarted(call) for call in calls if call.id not in begun]
    ends += [ToolReturned(ToolResult(call.id, "2")) for call in calls]
    return [*ends, TurnFinished("done")] if ends and not calls else ends


def answer(made: Session) -> None:
    """Answer a fork if it requested a run."""
    player = Player(made)
    with committed():
        if player.begin():
            check_context(list(ChatMessage.objects.in_conversation(made.pk).order_by("sequence")), may_wait=True)
            assert player.state is not None
            assert not unfinished(player.state)
            player.apply(ResponseStarted("one", "scripted", 1000), TextDelta("So"), *ENDS)
    assert SessionRun.objects.get(pk=made.pk).state == "idle"
