"""Push messages about sessions that wait for users, about answers that have taken a while, and about mentions.

They contain what the page's own notifications contain (`static/js/messages/notifications.js`): the session's title and
the question, but no text of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from django.db.models import F
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from chat import access, languages
from chat.models import (
    ChatMessage,
    EndReason,
    MessageStatus,
    MessageType,
    PushSubscription,
    RunState,
    Session,
    SessionRun,
    UserSessionState,
)
from chat.queries.push import reachable
from chat.queries.session_people import editors_in
from chat.rendering.messages.questions import QuestionCard
from chat.runs.approvals import standing_of
from chat.security import web_push
from chat.security.web_push import PushRequest, PushTarget, Urgency
from chat.snapshots import MessageSnapshot

# In seconds, as on the page. Shorter turns cause no notification.
LONG_TURN_SECONDS = 20.0
# Seconds for which a push service keeps a message for a browser that is not connected.
WAITING_SECONDS, DONE_SECONDS, TEST_SECONDS = 24 * 3600, 4 * 3600, 60
MAX_TITLE_LENGTH, MAX_BODY_LENGTH = 120, 240


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that its worker has released: the epoch of its claim, and its turns with the users who started them."""

    session_id: str
    epoch: int
    starters: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A message that mentions users."""

    session_id: str
    message_id: str


Cause = EndedRun | Mentioned


@dataclass(frozen=True, slots=True)
class Push:
    """A message for one browser. `session_id` is "" for a test message, which is about no session."""

    subscription_id: int
    user_id: int
    session_id: str
    request: PushRequest


@dataclass(frozen=True, slots=True)
class Notice:
    """A message about a session for some users.

    `about` is the row with the question or the mention, if there is one.
    """

    kind: Literal["waiting", "done", "failed", "mentioned"]
    session: Session
    user_ids: frozenset[int]
    about: ChatMessage | None = None


def pushes_about(causes: Iterable[Cause]) -> list[Push]:
    """Return the push messages about ended runs and mentions."""
    causes = list(causes)
    ended = [each for each in causes if isinstance(each, EndedRun)]
    mentions = [each for each in causes if isinstance(each, Mentioned)]
    return [*(_about_runs(ended) if ended else ()), *(_about_mentions(mentions) if mentions else ())]


def may_still_be_sent(push: Push) -> bool:
    """Return whether a message may be sent now: its user still has the session, and its browser gets messages."""
    place = (push.user_id, push.session_id)
    return place in access.roles([place]) and reachable([push.user_id]).filter(pk=push.subscription_id).exists()


def _about_mentions(mentions: Sequence[Mentioned]) -> list[Push]:
    """Return messages for the mentioned users who may see the session and have not read that far."""
    rows = ChatMessage.objects.filter(pk__in=[each.message_id for each in mentions], removed_at=None)
    rows = rows.select_related("session").order_by("revision")
    latest = {(user_id, row.session_id): row for row in rows for user_id, *_place in row.mentions or ()}
    states = UserSessionState.objects.filter(session__in={session_id for _user_id, session_id in latest})
    unread = states.filter(mentioned_revision__gt=F("read_revision")).values_list("user_id", "session_id")
    concerned = sorted(access.roles(latest.keys() & set(unread)))
    browsers = _browsers_of({user_id for user_id, _session_id in concerned})
    pushes = []
    for user_id, session_id in concerned:
        row = latest[user_id, session_id]
        notice = Notice("mentioned", row.session, frozenset([user_id]), row)
        pushes += [_push(notice, browser) for browser in browsers.get(user_id, ())]
    return pushes


def _browsers_of(user_ids: Iterable[int]) -> dict[int, list[PushSubscription]]:
    browsers: dict[int, list[PushSubscription]] = {}
    for browser in reachable(user_ids):
        browsers.setdefault(browser.user_id, []).append(browser)
    return browsers


def _about_runs(ended: Sequence[EndedRun]) -> list[Push]:
    """Return messages about ended runs, without the runs that have been claimed again."""
    if not PushSubscription.objects.exists():  # most often, no user has turned notifications on
        return []
    epochs = {each.session_id: each for each in ended}
    runs = SessionRun.objects.filter(pk__in=epochs, session__status=Session.Status.ACTIVE).select_related("session")
    resting = [run for run in runs if run.epoch == epochs[run.pk].epoch]
    if not resting:
        return []
    starters = {turn_id: user_id for each in epochs.values() for turn_id, user_id in each.starters.items()}
    editors: dict[str, set[int]] = {run.pk: set() for run in resting}
    for user_id, session_id in editors_in(editors):
        editors[session_id].add(user_id)
    browsers = _browsers_of(set().union(*editors.values()))
    people = {session_id: found & browsers.keys() for session_id, found in editors.items()}
    concerned = [run for run in resting if people[run.pk]]
    if not concerned:
        return []
    notices = [*_waiting(concerned, people), *_turn_end_notices(concerned, people, starters)]
    return [
        _push(notice, browser) for notice in notices for user_id in notice.user_ids for browser in browsers[user_id]
    ]


def example(browser: PushSubscription) -> Push:
    """Return a test message, with which a user can check that notifications reach the browser."""
    with _language_of(browser):
        title, body = "Parley", _("Notifications work in this browser.")
    return _message(browser, "", title, body, reverse("settings"), TEST_SECONDS, "high")


def _waiting(runs: Sequence[SessionRun], people: dict[str, set[int]]) -> Iterator[Notice]:
    """Yield notices for the users who can answer. Users who have approved all waiting calls, or may not, get none."""
    waiting = [run for run in runs if run.state == RunState.WAITING and not run.delegating]
    asking = ChatMessage.objects.filter(session__in=[run.pk for run in waiting], status=MessageStatus.WAITING)
    asks: dict[str, list[ChatMessage]] = {run.pk: [] for run in waiting}
    for row in asking.filter(removed_at=None, subsession__isnull=True).order_by("sequence"):
        asks[row.session_id].append(row)
    not_asked = _users_not_to_ask([(row, people[run.pk]) for run in waiting for row in asks[run.pk]])
    for run in waiting:
        rows = asks[run.pk]
        # Users who can answer none of the questions.
        left_out = set[int].intersection(*(not_asked[row.pk] for row in rows)) if rows else set[int]()
        if asked := frozenset(people[run.pk] - left_out):
            yield Notice("waiting", run.session, asked, rows[-1] if rows else None)


def _users_not_to_ask(questions: Sequence[tuple[ChatMessage, set[int]]]) -> dict[str, set[int]]:
    """Return, by question, the users who have approved the call or lack the role that its approval needs."""
    standings = {row.pk: standing_of(row.approval) for row, _people in questions}
    needed = {standing.needs.approvers for standing in standings.values() if standing} - {""}
    workspaces = {row.workspace_id for row, _people in questions}
    able = {
        approvers: set(access.approving(approvers).filter(workspace__in=workspaces).values_list("workspace", "user"))
        for approvers in needed
    }
    found: dict[str, set[int]] = {row.pk: set() for row, _people in questions}
    for row, people in questions:
        if standing := standings[row.pk]:
            found[row.pk] |= standing.approved_by
            if approvers := standing.needs.approvers:
                found[row.pk] |= {each for each in people if (row.workspace_id, each) not in able[approvers]}
    return found


def _turn_end_notices(
    runs: Sequence[SessionRun], people: dict[str, set[int]], starters: Mapping[str, int | None]
) -> Iterator[Notice]:
    """Yield notices for the owner and the user who started the turn, unless they have seen the end.

    A run with several turns causes one notice, about the last of the long turns. Sub-agents report to their callers
    instead.
    """
    idle = {run.pk: run for run in runs if run.state == RunState.IDLE and not run.session.caller_session_id}
    of_turns = ChatMessage.objects.filter(session__in=idle, turn_id__in=starters, removed_at=None)
    ends = of_turns.filter(type=MessageType.TURN_DONE, duration_seconds__gte=LONG_TURN_SECONDS)
    ends = ends.exclude(end_reason=EndReason.STOPPED)
    failed = set(of_turns.filter(type=MessageType.ERROR).values_list("turn_id", flat=True))
    states = UserSessionState.objects.filter(session__in=idle, user__in=set[int]().union(*people.values()))
    values = states.values_list("user_id", "session_id", "read_revision")
    seen = {(user_id, session_id): revision for user_id, session_id, revision in values}
    for end in {end.session_id: end for end in ends.order_by("sequence")}.values():
        run = idle[end.session_id]
        mine = people[run.pk].intersection(filter(None, (run.session.owner_id, starters[end.turn_id])))
        if unseen := frozenset(user_id for user_id in mine if seen.get((user_id, run.pk), 0) < end.revision):
            yield Notice("failed" if end.turn_id in failed else "done", run.session, unseen)


def _push(notice: Notice, browser: PushSubscription) -> Push:
    is_urgent = notice.kind in ("waiting", "mentioned")
    with _language_of(browser):
        title, body = notice.session.title or _("Untitled session"), _body(notice)
    place = "#waiting" if notice.kind == "waiting" else f"#{notice.about.pk}" if notice.about else ""
    address = reverse("session", args=[notice.session.pk]) + place
    seconds = WAITING_SECONDS if is_urgent else DONE_SECONDS
    return _message(browser, notice.session.pk, title, body, address, seconds, "high" if is_urgent else "normal")


def _body(notice: Notice) -> str:
    if notice.kind == "mentioned" and notice.about is not None:
        return _("%(name)s mentioned you.") % {"name": notice.about.sender}
    card = QuestionCard.of(MessageSnapshot.from_row(notice.about)) if notice.about else None
    if card is not None:
        return card.announcement
    words = {
        "waiting": _("The agent is waiting for your answer."),
        "done": _("The agent has finished."),
        "failed": _("The agent couldn’t finish its answer."),
    }
    return words[notice.kind]


def _message(
    browser: PushSubscription,
    session_id: str,
    title: str,
    body: str,
    address: str,
    seconds: int,
    urgency: Urgency,
) -> Push:
    tag = session_id or "test"
    values = {"title": _cut(title, MAX_TITLE_LENGTH), "body": _cut(body, MAX_BODY_LENGTH), "url": address, "tag": tag}
    payload = json.dumps(values, ensure_ascii=False).encode()
    target = PushTarget(browser.endpoint, browser.p256dh, browser.auth)
    request = web_push.request_to(target, payload, seconds=seconds, urgency=urgency, topic=tag)
    return Push(browser.pk, browser.user_id, session_id, request)


def _language_of(browser: PushSubscription) -> translation.override:
    return translation.override(languages.offered_language(browser.user.language or browser.language))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
