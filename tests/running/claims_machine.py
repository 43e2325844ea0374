"""A state machine that checks claims: two workers and two sessions on real rows, with steps in any order that
Hypothesis finds. The workers are the real `LeaseKeeper`, `lease`, `open_claim` and `record`. They run without
threads, event loop or sleep: time is a number that `time_passes` raises. What a runner and a bridge do with the
results is repeated here in short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.conf import settings
from django.db import OperationalError, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from chat import ids
from chat.models import ChatMessage, RunState, Session, SessionRun, User
from chat.runner.heartbeat import SAFE_SHARE
from chat.runner.resume import MAX_CLAIMS, TurnSnapshot, open_claim, read_open_turn
from chat.runs import lease
from chat.runs.changes import Change, CloseTurn, InsertMessage, RecordUsage, UpdateMessage
from chat.runs.lease import Claim
from chat.runs.lease_keeper import HeartbeatResult, LeaseKeeper
from chat.runs.liveness import GRACE
from chat.services.messages.sending import send_message
from chat.services.runs.control import cancel
from chat.services.runs.recording import Batch, Job, Outcome, PendingText, record
from chat.services.sessions.lifecycle import create_session

ROUNDS = 20
# The most runs of one turn without a finished response. The next turn in the same claim is counted separately.
MAX_PLAYS = MAX_CLAIMS + 1


class LostAnswer(OperationalError):  # noqa: N818  # the answer is lost, the work is done
    """The error of a connection that breaks after the COMMIT, before the client receives its answer."""


@contextmanager
def answer_lost(name: str) -> Iterator[None]:
    """Let the first call of a function of `lease` succeed and raise."""
    really: Callable[..., object] = getattr(lease, name)

    def succeed_and_raise(*args: object) -> object:
        setattr(lease, name, really)
        really(*args)
        raise LostAnswer

    setattr(lease, name, succeed_and_raise)
    try:
        yield
    finally:
        setattr(lease, name, really)


class SimulatedLock:
    """The locks of all processes; the lock of a process that has died or lost its connection is free."""

    grace = GRACE
    free_ones: ClassVar[set[str]] = set()

    def hold(self, worker_id: str) -> None:
        self.free_ones.discard(worker_id)

    def free(self, worker_ids: Iterable[str]) -> set[str]:
        return self.free_ones & set(worker_ids)

    def forget(self, worker_id: str) -> None:
        self.free_ones.discard(worker_id)

    def release(self) -> None: ...


@dataclass
class Run:
    """A claim as its bridge sees it. `pending` is the submitted job, with its texts, until it is confirmed."""

    claim: Claim
    written: int = 0
    turn: str = ""
    stream: str = ""
    length: int = 0
    pending: tuple[Job, Sequence[PendingText]] | None = None
    is_forgotten: bool = False


@dataclass(eq=False)
class Node:
    """A process. If `silent`, its network drops what it sends to the database; if `paused`, it does not run."""

    keeper: LeaseKeeper
    runs: dict[str, Run] = field(default_factory=dict)
    safe_until: float = float("-inf")
    paused: bool = False
    silent: bool = False


@dataclass
class Ledger:
    """The committed data: the rows of each session, and the texts of streaming rows by offset."""

    rows: dict[str, set[str]] = field(default_factory=dict)
    texts: dict[str, dict[int, str]] = field(default_factory=dict)

    def text(self, message_id: str) -> str:
        parts = self.texts[message_id]
        return "".join(parts[offset] for offset in sorted(parts))


At = tuple[Node, Run]


def connected(machine: Claims) -> list[Node]:
    return [node for node in machine.nodes if not (node.paused or node.silent)]


def cut_off(machine: Claims) -> list[Node]:
    return [node for node in machine.nodes if node.paused or node.silent]


def able_to_claim(machine: Claims) -> list[Node]:
    return [node for node in connected(machine) if machine.now < node.safe_until]


def running(machine: Claims) -> list[At]:
    return [(node, run) for node in machine.nodes if not node.paused for run in node.runs.values() if run.turn]


def able_to_write(machine: Claims) -> list[At]:
    return [(node, run) for node, run in running(machine) if run.pending is None]


def able_to_speak(machine: Claims) -> list[At]:
    return [(node, run) for node, run in able_to_write(machine) if run.stream and not node.silent]


def in_doubt(machine: Claims) -> list[At]:
    return [(node, run) for node, run in running(machine) if run.pending is not None]


def rule_of(choose: Callable[[Claims], Sequence[Any]], **drawn: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    """Make a rule that runs with one of the machine's present items, and is skipped if there are none."""
    drawn["at"] = st.runner().flatmap(lambda machine: st.sampled_from(list(choose(machine))))
    return lambda step: precondition(lambda machine: bool(choose(machine)))(rule(**drawn)(step))  # type: ignore[call-overload]  # mypy takes what is drawn for bundles


places = st.integers(0, 1)
fates = st.sampled_from(["ok", "ok", "answer lost", "rolled back"])


class Claims(RuleBasedStateMachine):
    """The state machine: each assertion is an invariant; `teardown` lets all nodes recover and checks that all work was
    served."""

    ana: ClassVar[User]
    playing: ClassVar[Claims]

    def __init__(self) -> None:
        super().__init__()
        Claims.playing = self
        self._example = transaction.savepoint()
        SimulatedLock.free_ones.clear()
        self.now = 1000.0
        self.sessions = [create_session(owner=self.ana, title=f"{number}") for number in range(2)]
        self.nodes = [self._node(), self._node()]
        self.ledger = Ledger({session.pk: set() for session in self.sessions})
        self.plays: Counter[str] = Counter()
        for place in range(len(self.sessions)):
            self.send(place)
        for node in self.nodes:
            self.beat(node)
        self.replicated()
        self.claim(self.nodes[0])

    def _node(self) -> Node:
        return Node(LeaseKeeper(SimulatedLock(), clock=lambda: self.now))

    # -- users ------------------------------------------------------------------------------------------------------

    @rule(place=places)
    def send(self, place: int) -> None:
        send_message(session=self.sessions[place], author=self.ana, text="Hi")

    @rule(place=places)
    def stop(self, place: int) -> None:
        cancel(session=self.sessions[place], author=self.ana)

    # -- time, machines and networks --------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.6, 2.0, 6.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule_of(connected, way=st.sampled_from(["pause", "silence", "disconnect"]))
    def disturb(self, at: Node, way: str) -> None:
        """Suspend a process, silence its network, or cut its heartbeat's connection so that both sides notice."""
        at.paused, at.silent = way == "pause", way == "silence"
        if way == "disconnect":
            SimulatedLock.free_ones.add(at.keeper.worker_id)
            at.keeper.disconnected()
            at.safe_until = min(at.safe_until, self.now + at.keeper.grace * SAFE_SHARE)

    @rule_of(cut_off)
    def recover(self, at: Node) -> None:
        at.paused = at.silent = False

    @rule_of(connected, way=st.sampled_from(["pause", "silence"]))
    def vanish(self, at: Node, way: str) -> None:
        """Cut a process off until the other one has taken over its sessions."""
        self.disturb(at, way)
        self._taken_over(at.keeper.worker_id)

    @rule_of(connected, times=st.integers(1, 2 * MAX_PLAYS))
    def crash(self, at: Node, times: int) -> None:
        """End a process, then the process that takes over its sessions, and so on."""
        for _ in range(times):
            SimulatedLock.free_ones.add(at.keeper.worker_id)
            self.nodes.remove(at)
            self.nodes.append(self._node())
            self._taken_over(at.keeper.worker_id)
            at = self.nodes[0]

    @rule_of(connected)
    def look(self, at: Node) -> None:
        """Check between two heartbeats whether the other process has died."""
        at.keeper.free_dead_workers()

    def _taken_over(self, worker_id: str) -> None:
        """Let time pass until the other process has noticed the failure and claimed the sessions, if it is able to."""
        for other in [node for node in connected(self) if node.keeper.worker_id != worker_id][:1]:
            while worker_id in lease.other_workers(""):
                self.now += other.keeper.interval
                self.beat(other)
            self.claim(other)

    @rule_of(connected)
    def restart(self, at: Node) -> None:
        """End a process in an orderly way and start another one in its place."""
        for run in at.runs.values():
            self.plays[run.turn] -= 1
        at.keeper.end()
        self.nodes[self.nodes.index(at)] = self._node()

    @rule()
    def replicated(self) -> None:
        """Mark the point from which a failover loses transactions."""
        self._mark, self._marked = transaction.savepoint(), deepcopy((self.ledger, self.plays))

    @rule_of(lambda machine: machine.nodes, claims=st.booleans())
    def fail_over(self, at: Node, claims: bool) -> None:
        """Promote a replica that lacks the last transactions; a worker may claim a session there immediately."""
        transaction.savepoint_rollback(self._mark)
        self.ledger, self.plays = deepcopy(self._marked)
        for run in (run for node in self.nodes for run in node.runs.values()):
            run.is_forgotten = True
        if claims and at in able_to_claim(self):
            self.claim(at)

    @rule_of(able_to_claim)
    def claim_and_be_forgotten(self, at: Node) -> None:
        """Claim just before a failover that loses the claim and lets the other worker claim; then write."""
        self.replicated()
        self.claim(at)
        for other in [each for each in able_to_claim(self) if each is not at]:
            self.fail_over(other, claims=True)
            for node, run in able_to_write(self):
                if node is at and not node.silent:
                    self.write((node, run), "ok")

    # -- the heartbeat ----------------------------------------------------------------------------------------------

    @rule_of(connected)
    def beat(self, at: Node) -> None:
        self._act(at, at.keeper.beat(self._claims(at)))

    @rule_of(connected, name=st.sampled_from(["register_worker", "renew", "adopt", "take_over"]))
    def beat_without_answer(self, at: Node, name: str) -> None:
        with answer_lost(name):
            try:
                beat = at.keeper.beat(self._claims(at))
            except LostAnswer:
                return
        self._act(at, beat)

    def _claims(self, node: Node) -> dict[str, Claim]:
        return {session_id: run.claim for session_id, run in node.runs.items()}

    def _act(self, node: Node, beat: HeartbeatResult) -> None:
        node.safe_until = beat.began + settings.LEASE_SECONDS * SAFE_SHARE
        for claim in beat.lost:
            row = row_of(claim)
            assert (row.owner_id, row.epoch) != (claim.worker_id, claim.epoch), "a run was cut that no other worker has"
            node.runs.pop(claim.session_id, None)
        for run in node.runs.values():
            row = row_of(run.claim)
            is_mine = row.epoch == run.claim.epoch and row.owner_id in (run.claim.worker_id, None)
            assert is_mine, "a worker that has compared its claims with the rows does not know that one is lost"
        for claim in beat.adopted:
            self._take(node, claim)

    # -- the runner -------------------------------------------------------------------------------------------------

    @rule_of(able_to_claim)
    def claim(self, at: Node) -> None:
        for claim in lease.claim(at.keeper.worker_id, 1):
            self._take(at, claim)

    @rule_of(able_to_claim)
    def claim_without_answer(self, at: Node) -> None:
        lease.claim(at.keeper.worker_id, 1)

    def _take(self, node: Node, claim: Claim) -> None:
        present = node.runs.get(claim.session_id)
        if present is None or present.claim.worker_id != claim.worker_id or present.claim.epoch < claim.epoch:
            run = node.runs[claim.session_id] = Run(claim)
            open_claim(claim, 0.0)  # the answer is lost, so the bridge sends the call again
            self._opened(node, run, open_claim(claim, 0.0))

    # -- the bridge -------------------------------------------------------------------------------------------------

    def _opened(self, node: Node, run: Run, found: TurnSnapshot | None) -> None:
        if found is None:
            node.runs.pop(run.claim.session_id)
            return
        run.turn, run.written, run.pending = found.state.turn_id, found.written, None
        run.stream, run.length = "", 0
        if found.exhausted:
            self._finish(node, run, "ok", *end(found.state.open.id if found.state.open else ""))
            return
        self.plays[run.turn] += 1
        assert self.plays[run.turn] <= MAX_PLAYS, "a turn that ends its process is taken up again and again"
        if found.state.open:
            self._submit(node, run, "ok", *end(found.state.open.id))

    @rule_of(able_to_write, fate=fates)
    def write(self, at: At, fate: str) -> None:
        """Write a row, and text into the streaming row."""
        node, run = at
        changes: list[Change] = [insert(ids.message_id(), run.turn, "complete")]
        if not run.stream:
            run.stream = ids.message_id()
            changes.append(insert(run.stream, run.turn, "streaming"))
        self._submit(node, run, fate, *changes, texts=[append(run)])

    @rule_of(able_to_write, fate=fates)
    def respond(self, at: At, fate: str) -> None:
        """Finish a response, which counts as progress of the turn."""
        self._submit(*at, fate, RecordUsage("demo", "one", 1, 10, 2))

    @rule_of(able_to_speak)
    def speak(self, at: At) -> None:
        """Write only text, without a job, as in most writes of a run."""
        node, run = at
        text = append(run)
        (outcome,) = record([], [text]).texts
        self._judge(run, outcome is Outcome.WRITTEN)
        if outcome is Outcome.WRITTEN:
            self._spoken(text)
        else:
            node.runs.pop(run.claim.session_id)  # the writer's `on_fenced`

    @rule_of(running)
    def publish(self, at: At) -> None:
        """Publish live text, which no transaction protects."""
        node, run = at
        if self.now < node.safe_until and not run.is_forgotten:
            is_mine = row_of(run.claim).claimant == run.claim.worker_id
            assert is_mine, "text is published by a worker whose session another one has"

    @rule_of(able_to_write, fate=fates)
    def finish(self, at: At, fate: str) -> None:
        node, run = at
        self._finish(node, run, fate, *end(run.stream))

    @rule_of(in_doubt, fate=fates)
    def retry(self, at: At, fate: str) -> None:
        """Repeat the writes that are not confirmed, as the writer does."""
        self._write(*at, fate)

    def _finish(self, node: Node, run: Run, fate: str, *before: Change) -> None:
        done = InsertMessage(ids.message_id(), "turn_done", {"type": "turn_done", "turn_id": run.turn})
        self._submit(node, run, fate, *before, done, CloseTurn())

    def _submit(self, node: Node, run: Run, fate: str, *changes: Change, texts: Sequence[PendingText] = ()) -> None:
        run.written += 1
        run.pending = (Job(run.claim, run.written, changes), texts)
        self._write(node, run, fate)

    def _write(self, node: Node, run: Run, fate: str) -> None:
        assert run.pending is not None
        if node.silent:
            return
        job, texts = run.pending
        with transaction.atomic():
            try:
                batch = record([job], texts)
            except Exception as error:
                raise AssertionError("a turn is closed as failed whose rows are complete") from error
            self._judge(run, batch.jobs[0].outcome is Outcome.WRITTEN)
            transaction.set_rollback(fate == "rolled back")
        if fate == "rolled back":
            return
        if batch.jobs[0].outcome is Outcome.WRITTEN:
            self._committed(run, job, texts)
        if fate == "ok":
            run.pending = None
            self._answered(node, run, job, batch)

    def _judge(self, run: Run, has_written: bool) -> None:
        is_mine = row_of(run.claim).claimant == run.claim.worker_id
        assert is_mine or not has_written, "a worker writes into a session of another one"

    def _committed(self, run: Run, job: Job, texts: Sequence[PendingText]) -> None:
        inserted = {change.id for change in job.changes if isinstance(change, InsertMessage)}
        self.ledger.rows[run.claim.session_id] |= inserted
        for text in texts:
            self._spoken(text)
        if any(isinstance(change, RecordUsage) for change in job.changes):
            self.plays[run.turn] = 0

    def _spoken(self, text: PendingText) -> None:
        self.ledger.texts.setdefault(text.message_id, {})[text.offset] = text.text

    def _answered(self, node: Node, run: Run, job: Job, batch: Batch) -> None:
        """Handle the result of a job as a bridge does."""
        (recorded,) = batch.jobs
        if recorded.outcome is Outcome.FENCED:
            node.runs.pop(run.claim.session_id)
        elif recorded.outcome is Outcome.REWOUND:
            assert run.is_forgotten, "rows are lacking although the database has lost none"
            self._opened(node, run, read_open_turn(run.claim, 0.0))
        elif any(isinstance(change, CloseTurn) for change in job.changes):
            run.turn, run.stream, run.length = recorded.next_turn, "", 0
            if not run.turn:
                node.runs.pop(run.claim.session_id)

    # -- the end ----------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            self._serve_everything()
            self._check_rows()
        finally:
            transaction.savepoint_rollback(self._example)

    def _serve_everything(self) -> None:
        for node in self.nodes:
            self.recover(node)
        for _ in range(ROUNDS):
            if all(map(is_served, self.sessions)):
                return
            self.time_passes(2.0)
            for node in self.nodes:
                self.beat(node)
                self.claim(node)
                for at in in_doubt(self):
                    self.retry(at, "ok")
                for at in able_to_write(self):
                    self.finish(at, "ok")
        raise AssertionError("a session that was asked for is never served")

    def _check_rows(self) -> None:
        for session in self.sessions:
            found = ChatMessage.objects.filter(session=session)
            lost = self.ledger.rows[session.pk] - set(found.values_list("pk", flat=True))
            assert not lost, "a committed row is lost"
            said = dict(found.filter(pk__in=self.ledger.texts).values_list("pk", "text"))
            assert said == {name: self.ledger.text(name) for name in said}, "text is lost or doubled"


def row_of(claim: Claim) -> SessionRun:
    return SessionRun.objects.get(pk=claim.session_id)


def is_served(session: Session) -> bool:
    run = SessionRun.objects.get(pk=session.pk)
    return (run.state, run.owner_id, run.done) == (RunState.IDLE, None, run.wanted)


def append(run: Run) -> PendingText:
    """Add a piece of text to the streaming row; the text is its own offset."""
    text = PendingText(run.claim, run.stream, run.length, f"{run.length},")
    run.length += len(text.text)
    return text


def insert(message_id: str, turn: str, status: str) -> InsertMessage:
    fields = {"type": "text", "role": "system", "turn_id": turn, "status": status}
    return InsertMessage(message_id, "message_updated", fields)


def end(message_id: str) -> list[Change]:
    """End the streaming row, if there is one."""
    update = UpdateMessage(message_id, "message_updated", {"status": "interrupted"}, compact=True)
    return [update] if message_id else []
