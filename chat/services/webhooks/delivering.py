"""Take deliveries that are due, one process at a time for each webhook, and record their results."""

from __future__ import annotations

import random
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from chat.models import TEST_EVENT, Webhook, WebhookDelivery
from chat.queries.webhooks import body_of, live_webhooks
from chat.security.encryption import DecryptionError, decrypt
from chat.services.people.outside_addresses import host_of
from chat.services.people.security_log import Kind, record

Status, Problem = WebhookDelivery.Status, WebhookDelivery.Problem
OffReason = Webhook.OffReason

# Seconds to wait after the first failed attempt, the second one, and so on. A failure after the last delay is final.
RETRIES = (5, 60, 300, 1800, 7200, 28_800)
# Each delay is longer by a random share of up to this, so that a receiver that works again does not get all requests at
# the same time.
JITTER = 0.2
# How long a process holds a delivery before it counts as dead. Longer than a request may take.
LEASE = timedelta(seconds=60)
OFF_AFTER = timedelta(days=5)
KEPT = timedelta(days=30)
GONE = 410


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery that this process sends now.

    `attempt` is the number of the attempt; results of earlier attempts are not recorded. `secrets` sign the request;
    there are none if they can no longer be decrypted. `retries` is True if another attempt follows a failure.
    """

    id: str
    webhook_id: int
    attempt: int
    url: str
    secrets: tuple[str, ...]
    body: bytes
    holder: str = ""
    retries: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request. `status` is None if there was no response; `problem` is "" if the request succeeded."""

    status: int | None
    problem: str
    duration_ms: int


def due() -> dict[int, datetime]:
    """Return when the next delivery of each webhook is due, or was due, by the webhook's id."""
    rows = WebhookDelivery.objects.filter(next_at__isnull=False, webhook__in=live_webhooks())
    return dict(rows.order_by().values_list("webhook").annotate(at=Min("next_at")))


@transaction.atomic
def take(webhook_id: int, now: datetime) -> Taken | None:
    """Take the oldest delivery that is due. Return None if there is none, or another process has the webhook.

    If the process dies, the delivery is due again when its lease ends.
    """
    holder = secrets.token_hex(16)
    free = live_webhooks().filter(Q(busy_until=None) | Q(busy_until__lte=Now()), pk=webhook_id)
    if not free.update(holder=holder, busy_until=Now() + LEASE):
        return None  # another process has it
    row = WebhookDelivery.objects.filter(webhook=webhook_id, next_at__lte=now).order_by("pk").first()
    if row is None:
        _release(webhook_id, holder)
        return None
    return _begin(row, now, holder=holder)


@transaction.atomic
def take_test(webhook: Webhook, now: datetime) -> Taken:
    """Create and take a delivery that tests whether the address accepts requests, even if the webhook is off."""
    row = WebhookDelivery(webhook=webhook, event=TEST_EVENT, facts={"status": "test"}, happened_at=now, next_at=now)
    row.save(force_insert=True)
    return _begin(row, now, retries=False)


@transaction.atomic
def take_again(delivery: WebhookDelivery, now: datetime) -> Taken:
    """Take a delivery that a user sends again. If it is still pending, a failure is followed by the usual attempts."""
    row = WebhookDelivery.objects.select_for_update().get(pk=delivery.pk)
    return _begin(row, now, retries=row.status == Status.PENDING and row.event != TEST_EVENT)


def _begin(row: WebhookDelivery, now: datetime, *, holder: str = "", retries: bool = True) -> Taken:
    row.status, row.attempts, row.tried_at, row.next_at = Status.PENDING, row.attempts + 1, now, now + LEASE
    row.save(update_fields=["status", "attempts", "tried_at", "next_at"])
    row = WebhookDelivery.objects.select_related("webhook__author", "session").get(pk=row.pk)
    signed_with = _secrets_of(row.webhook, now)
    return Taken(row.pk, row.webhook_id, row.attempts, row.webhook.url, signed_with, body_of(row), holder, retries)


def _secrets_of(webhook: Webhook, now: datetime) -> tuple[str, ...]:
    kept = [webhook.secret]
    if webhook.previous_until is not None and now < webhook.previous_until:
        kept.append(webhook.previous_secret)
    found = []
    for each in kept:
        with suppress(DecryptionError):  # the key of this server has changed since
            found.append(decrypt(each))
    return tuple(found)


@transaction.atomic
def finish(taken: Taken, answer: Answer, now: datetime) -> bool:
    """Record the result of an attempt, and let other processes have the webhook.

    Return False and do not record the result if another attempt has begun since, because the lease had ended.
    """
    webhook = Webhook.objects.select_for_update().filter(pk=taken.webhook_id).first()
    if webhook is None:
        return False
    if taken.holder:
        _release(taken.webhook_id, taken.holder)
    attempt = WebhookDelivery.objects.filter(pk=taken.id, attempts=taken.attempt, status=Status.PENDING)
    values: dict[str, Any] = {"answered": answer.status, "problem": answer.problem, "duration_ms": answer.duration_ms}
    is_retried = bool(answer.problem) and taken.retries and taken.attempt <= len(RETRIES) and answer.status != GONE
    if is_retried:
        values["next_at"] = now + delay_after(taken.attempt)
    else:
        values |= {"next_at": None, "status": Status.FAILED if answer.problem else Status.DELIVERED}
    if not attempt.update(**values):
        return False  # another process got there first
    _judge(webhook, answer, now, counts=taken.retries, is_final=not is_retried)
    return True


def delay_after(attempt: int) -> timedelta:
    """Return how long to wait after a failed attempt; `attempt` counts from 1."""
    return timedelta(seconds=RETRIES[attempt - 1] * random.uniform(1, 1 + JITTER))  # noqa: S311  # no secret


def _judge(webhook: Webhook, answer: Answer, now: datetime, *, counts: bool, is_final: bool) -> None:
    """Turn a webhook off if its address is gone, or has accepted nothing for OFF_AFTER.

    Only the end of a delivery turns it off (`is_final`), because an attempt of a rare delivery can fail by chance.
    Without `counts`, for tests and for ended deliveries that a user sends again, only an address that is gone matters.
    """
    if not answer.problem:
        Webhook.objects.filter(pk=webhook.pk, failing_since__isnull=False).update(failing_since=None)
        return
    since = webhook.failing_since or now
    if answer.status == GONE:
        _turn_off(webhook, OffReason.GONE)
    elif not counts:
        return
    elif is_final and now - since >= OFF_AFTER:
        _turn_off(webhook, OffReason.FAILING)
    elif webhook.failing_since is None:
        Webhook.objects.filter(pk=webhook.pk).update(failing_since=now)


def _turn_off(webhook: Webhook, reason: Webhook.OffReason) -> None:
    if Webhook.objects.filter(pk=webhook.pk, is_enabled=True).update(is_enabled=False, off_reason=reason):
        cancel_pending(webhook.pk)
        record(Kind.WEBHOOK_CHANGED, actor=None, target=webhook, host=host_of(webhook.url), enabled=0, reason=reason)


def cancel_pending(webhook_id: int) -> None:
    """Cancel the pending deliveries of a webhook that is turned off. Users can still send each one again."""
    waiting = WebhookDelivery.objects.filter(webhook=webhook_id, next_at__isnull=False)
    waiting.update(status=Status.FAILED, next_at=None, problem=Problem.OFF)


def _release(webhook_id: int, holder: str) -> None:
    Webhook.objects.filter(pk=webhook_id, holder=holder).update(holder="", busy_until=None)


def expired() -> tuple[Any, Any]:
    """Return the deliveries that are too old to be kept, and the webhooks that were removed too long ago."""
    before = timezone.now() - KEPT
    return WebhookDelivery.objects.filter(happened_at__lt=before), Webhook.objects.filter(removed_at__lt=before)
