"""The requests to a session's models, stored as references to rows, and rebuilt from the rows and their revisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from agents.messages import Json
from chat.models import ChatMessage, MessageRevision, ModelRequest, Session, SessionRevision
from chat.projections.context import CONTEXT_FIELDS, Around
from chat.projections.requests import RequestRows, RowReference, all_references, row_as_sent
from chat.queries.attachments import fetch_attachments
from chat.queries.history import keeps_content
from chat.queries.senders import around_past_request

# Databases limit the number of values in a query.
BATCH = 5_000


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A past request: its rows in order as they were, the ids of `lost` rows, and the session's prompt at that time.

    `now` has the same rows as they are now, by id, including removed ones. `around` has the senders of the messages
    that a summary replaced.
    """

    made: ModelRequest
    rows: list[ChatMessage]
    now: dict[str, ChatMessage]
    lost: list[str]
    system_prompt: str
    around: Around


def requests_of(session: Session, before: str | None, limit: int) -> list[ModelRequest]:
    """Read a session's requests, the newest first, after the request `before` if it is given."""
    made = ModelRequest.objects.filter(session=session).order_by("-created_at", "-pk")
    if before is not None:
        last = made.filter(pk=before).values_list("created_at", flat=True).first()
        if last is None:
            return []
        made = made.filter(Q(created_at__lt=last) | Q(created_at=last, pk__lt=before))
    return list(made.defer("rows")[:limit])


def past_request(session: Session, response_id: str) -> RecordedRequest | None:
    """Rebuild the request of a response, in a fixed number of queries. Return None if it was not recorded."""
    made = ModelRequest.objects.filter(session=session, pk=response_id).first()
    if made is None:
        return None
    try:
        references = _references(made)
    except LookupError:  # an imported request may refer to others that were not imported
        return None
    rows = _rows(session, [message_id for message_id, _revision in references])
    fetch_attachments(list(rows.values()), with_text=True)
    found = [reference for reference in references if reference[0] in rows]
    before = _records(found)
    sent = [
        row_as_sent(rows[message_id], before.get(message_id), place)
        for place, (message_id, _revision) in enumerate(found, 1)
    ]
    return RecordedRequest(
        made=made,
        rows=sent,
        now=rows,
        lost=[message_id for message_id, _revision in references if message_id not in rows],
        system_prompt=prompt_then(session, made.revision),
        around=around_past_request(made, sent),
    )


def prompt_then(session: Session, revision: int) -> str:
    """Return the session's own system prompt at one of its revisions."""
    later = SessionRevision.objects.filter(session=session, revision__gt=revision).order_by("revision", "pk")
    for before in later.values_list("before", flat=True):
        if "system_prompt" in before:
            return str(before["system_prompt"])
    return session.system_prompt


def _references(made: ModelRequest) -> list[RowReference]:
    """Return all row references of a request. Revisions order the requests, because clocks may be set back."""
    earlier = ModelRequest.objects.filter(session=made.session_id, revision__lte=made.revision)
    chain = earlier.order_by("-revision", "-created_at").values_list("shared", "rows")
    return all_references(RequestRows(shared, tuple(map(_reference, rows))) for shared, rows in chain.iterator())


def _reference(pair: Sequence[Any]) -> RowReference:
    return str(pair[0]), int(pair[1])


def _rows(session: Session, ids: Sequence[str]) -> dict[str, ChatMessage]:
    """Fetch rows of this session only, because imported references may name rows of any session."""
    rows = ChatMessage.objects.filter(session=session).only(
        *CONTEXT_FIELDS, "revision", "removed_at", "model", "edited_by_name", "timestamp"
    )
    return {pk: row for some in _batches(ids) for pk, row in rows.in_bulk(list(some)).items()}


def _records(references: Sequence[RowReference]) -> Mapping[str, Json]:
    """Return the earlier content of messages by id: the first that was replaced after the given revision.

    Rows whose content has not changed are missing.
    """
    revisions = dict(references)
    found: dict[str, Json] = {}
    for some in _batches(list(revisions)):
        records = MessageRevision.objects.filter(message__in=some).order_by("pk")
        for message_id, before in records.values_list("message_id", "before"):
            if keeps_content(before) and before.get("revision", -1) >= revisions[message_id]:
                found.setdefault(message_id, before)
    return found


def _batches(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
