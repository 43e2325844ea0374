"""Read what one viewer lacks from the rows, and make frames of it, in a thread because it may be a whole session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils import translation

from agents.messages import Json
from chat.access import session_for
from chat.errors import NoSuchSession
from chat.live.event_json import changes_frames, dump
from chat.live.subscriber import Protocol
from chat.models import User
from chat.queries.messages import Changes, changes_since
from chat.queries.steps import StepChanges, steps_since
from chat.rendering.messages.frames import message_frame, session_frame
from chat.snapshots import MessageSnapshot

# A page that has missed more messages or characters than this is reloaded.
MAX_CHANGES = 300
MAX_CHANGED_CHARS = 300_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The frames that bring a viewer to `revision`. With `reload`, the page must be reloaded instead.

    The text of `streaming` messages is that of the rows, and may have grown since.
    """

    revision: int
    frames: list[str]
    streaming: list[MessageSnapshot] = field(default_factory=list)
    reload: bool = False


def read(
    protocol: Protocol, language: str, user: User, session_id: str, since: int, have: dict[str, Json] | None
) -> Answer:
    """Read what changed since a revision, and the messages of which the viewer has a part, in `have` (LIVE-02).

    If `have` is None, these are not known, so all streaming messages are read. Raise NoSuchSession if the session does
    not exist any more or the viewer has lost access.
    """
    with translation.override(language):
        session_for(user, session_id)
        changes = changes_since(session_id, since, list(have or ()), all_streaming=have is None)
        if changes is None:
            raise NoSuchSession
        if not changes.is_known:
            return _reload_page(changes) if protocol == "page" else _all_events(session_id)
        return _page(changes, since) if protocol == "page" else _events(changes, since, have or {})


def read_steps(user: User, session_id: str, since: int) -> StepChanges:
    """Read which steps may have changed since a revision (LIVE-03). Raise NoSuchSession, as `read` does."""
    session_for(user, session_id)
    changes = steps_since(session_id, since)
    if changes is None:
        raise NoSuchSession
    return changes


def _all_events(session_id: str) -> Answer:
    changes = changes_since(session_id, 0)
    if changes is None:
        raise NoSuchSession
    frames = [dump(frame) for frame in changes_frames(changes, 0, {}, is_all=True)]
    return Answer(changes.revision, frames, _streaming(changes))


def _events(changes: Changes, since: int, have: dict[str, Json]) -> Answer:
    lengths = {message_id: int(known.get("length", 0)) for message_id, known in have.items()}
    frames = [dump(frame) for frame in changes_frames(changes, since, lengths)]
    return Answer(changes.revision, frames, _streaming(changes))


def _page(changes: Changes, since: int) -> Answer:
    if len(changes.messages) > MAX_CHANGES or _length(changes.messages) > MAX_CHANGED_CHARS:
        return _reload_page(changes)
    frames: list[Json] = [{"op": "syncing"}]
    frames += [{"op": "remove", "revision": None, "id": message_id} for message_id in changes.removed]
    for message in changes.messages:
        if message.status != "streaming" or message.revision > since:
            frames.append(message_frame(message))
    frames.append(session_frame(changes.session, None))
    return Answer(changes.revision, [dump(frame) for frame in frames], _streaming(changes))


def _length(messages: Sequence[MessageSnapshot]) -> int:
    """Return the number of characters in several messages, or 0 for a single one, which is always drawn."""
    if len(messages) == 1:
        return 0
    return sum(len(each.text) + len(each.tool.result if each.tool else "") for each in messages)


def _reload_page(changes: Changes) -> Answer:
    return Answer(changes.revision, [dump({"op": "reload"})], reload=True)


def _streaming(changes: Changes) -> list[MessageSnapshot]:
    return [message for message in changes.messages if message.status == "streaming"]
