"""Replace the ids in a document, so that references still point to the same objects."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from chat import ids
from chat.transfer.document.schema import Document, MessagePart, RequestPart, RevisionPart


class DuplicateId(ValueError):
    """Two objects of one kind in a document have the same id."""


class IdMap:
    """New ids by old ids, with one map for each kind. With `keep`, ids in Parley's own form are kept (MSG-02)."""

    def __init__(self, *, keep: bool = False) -> None:
        self._keep = keep
        self.session = self._kind(ids.session_id)
        self.messages = self._kind(ids.message_id)
        self.turns = self._kind(ids.turn_id)
        self.responses = self._kind(ids.response_id)
        self.attachments = self._kind(ids.attachment_id)
        self.attempts = self._kind(ids.attempt_id)

    def _kind(self, make: Callable[[], str]) -> Callable[[str], str]:
        known: dict[str, str] = defaultdict(make)
        may_stay = re.compile(rf"{make()[:2]}[0-9a-f]{{24,30}}")
        return lambda old: old and (old if self._keep and may_stay.fullmatch(old) else known[old])


def require_unique(document: Document) -> None:
    """Raise DuplicateId if two objects of one kind have the same id."""
    files = [file.id for each in document.messages for file in each.attachments]
    for named in ([each.id for each in document.messages], [each.response_id for each in document.requests], files):
        given = [name for name in named if name]
        if len(set(given)) != len(given):
            raise DuplicateId


def named_ids(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the kind and id of each object: ("session" | "message" | "attachment" | "request", id)."""
    yield "session", document.session.id
    for each in document.messages:
        yield "message", each.id
        yield from (("attachment", file.id) for file in each.attachments)
    yield from (("request", each.response_id) for each in document.requests)


def remap_message(message: MessagePart, new_ids: IdMap) -> MessagePart:
    """Return a message with new ids. A message without an id gets one."""
    new = {
        "id": new_ids.messages(message.id) or ids.message_id(),
        "run_id": new_ids.turns(message.run_id),
        "response_id": new_ids.responses(message.response_id),
        "attempt": new_ids.attempts(message.attempt),
    }
    return message.model_copy(update=new)


# The keys of a revision that contain ids of messages.
PLACES = ("after", "anchor", "edited_message")


def remap_revision(revision: RevisionPart, new_ids: IdMap, session_id: str) -> RevisionPart:
    """Return a revision of a message with new ids."""
    before = revision.before
    if not before:
        return revision
    after = {name: new_ids.messages(before[name]) for name in PLACES if name in before}
    if "id" not in before:
        return revision.model_copy(update={"before": {**before, **after}})
    files = {}
    if before.get("attachments"):
        files["attachments"] = [{**file, "id": new_ids.attachments(file["id"])} for file in before["attachments"]]
    new = {
        "id": new_ids.messages(before["id"]),
        "session_id": session_id,
        "turn_id": new_ids.turns(before["turn_id"]),
        "response_id": new_ids.responses(before["response_id"]),
        # Users of another server do not exist on this one.
        "user_id": None,
        **dict.fromkeys({"edited_by_id", "stopped_by_id"} & before.keys()),
    }
    return revision.model_copy(update={"before": {**before, **new, **after, **files}})


def remap_request(request: RequestPart, new_ids: IdMap) -> RequestPart:
    """Return a request with new ids."""
    rows = [(new_ids.messages(name), revision) for name, revision in request.rows]
    return request.model_copy(update={"response_id": new_ids.responses(request.response_id), "rows": rows})
