"""The page of a workspace's webhooks, for its owners and admins."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.errors import ServiceError
from chat.limits.rates import spend
from chat.models import TEST_EVENT, Webhook, WebhookDelivery, WebhookEvent, Workspace
from chat.permissions import Permission
from chat.queries.webhooks import deliveries_of
from chat.runner.webhook_sending import send_now
from chat.services.webhooks import delivering
from chat.services.webhooks import managing as service
from chat.services.webhooks.delivering import Answer, Taken
from chat.services.webhooks.managing import WebhookSettings
from chat.views.requests import SignedInRequest, number, status_of, workspace_page

Values = dict[str, Any]
# The number of deliveries that the page shows for each webhook.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Fields:
    """The values in the form of a webhook: of a stored webhook, of a refused form, or of a new webhook."""

    prefix: str
    url: str = ""
    events: Collection[str] = (WebhookEvent.TURN_FINISHED, WebhookEvent.TURN_FAILED, WebhookEvent.AGENT_WAITING)
    include_text: bool = False
    is_enabled: bool = True

    @property
    def choices(self) -> list[Values]:
        return [
            {"value": value, "label": label, "is_chosen": value in self.events} for value, label in WebhookEvent.choices
        ]


@workspace_page(Permission.MANAGE_WEBHOOKS)
def webhooks(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Show the webhooks of a workspace, or handle the form named by `part`."""
    if request.method == "GET":
        return _page(request, workspace)
    part = request.POST.get("part", "")
    try:
        response = PARTS[part](request, workspace) if part in PARTS else None
    except ServiceError as refused:
        return _page(request, workspace, _refusal_values(request, part, refused), status=status_of(refused))
    return response or redirect("webhooks", workspace.pk)


def _refusal_values(request: SignedInRequest, part: str, refused: ServiceError) -> Values:
    """Return the values of the page for a refused form, which keeps what the user has entered."""
    if part == "change" and refused.code == "no_such_webhook":
        words = _("This webhook was removed in the meantime. Your entries are in this form.")
        return {"refused": {"add": words}}
    values = {"refused": {part: refused.message}, "refused_id": _webhook_id(request)}
    if part not in ("add", "change"):
        values["problem"] = refused.message
    return {**values, "newer": refused.details.get("version")}


def _read_form(request: SignedInRequest) -> WebhookSettings:
    return WebhookSettings(
        url=request.POST.get("url", ""),
        events=request.POST.getlist("events"),
        include_text="include_text" in request.POST,
        is_enabled="is_enabled" in request.POST,
    )


def _add(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Add a webhook and show its secret, which is not shown again."""
    webhook, secret = service.add(author=request.user, workspace_id=workspace.pk, given=_read_form(request))
    return _page(request, workspace, {"made": webhook, "secret": secret})


def _change(request: SignedInRequest, _workspace: Workspace) -> None:
    # `replace` is the version that the user has decided to overwrite.
    seen = request.POST.get("replace") or request.POST.get("version", "")
    service.change(author=request.user, webhook_id=_webhook_id(request), given=_read_form(request), seen=seen)
    messages.success(request, _("Webhook saved."))


def _turn_on(request: SignedInRequest, _workspace: Workspace) -> None:
    service.switch(author=request.user, webhook_id=_webhook_id(request), is_enabled=True)
    messages.success(request, _("Webhook turned on."))


def _turn_off(request: SignedInRequest, _workspace: Workspace) -> None:
    service.switch(author=request.user, webhook_id=_webhook_id(request), is_enabled=False)
    messages.success(request, _("Webhook turned off."))


def _renew_secret(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Create a new signing secret and show it. It is not shown again."""
    webhook, secret = service.renew_secret(author=request.user, webhook_id=_webhook_id(request))
    return _page(request, workspace, {"made": webhook, "secret": secret, "is_renewed": True})


def _remove(request: SignedInRequest, _workspace: Workspace) -> None:
    removed = service.remove(author=request.user, webhook_id=_webhook_id(request))
    messages.success(request, _("Webhook removed."), extra_tags=f"restore {removed.pk}")


def _restore(request: SignedInRequest, _workspace: Workspace) -> None:
    service.restore(author=request.user, webhook_id=number(request.POST.get("undo", "")) or 0)
    messages.success(request, _("Webhook restored."))


def _test(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    webhook = service.managed_webhook(request.user, _webhook_id(request))
    spend("webhook_requests", request.user.pk)
    return _send(request, workspace, delivering.take_test(webhook, timezone.now()))


def _again(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    delivery = service.managed_delivery(request.user, request.POST.get("delivery", ""))
    spend("webhook_requests", request.user.pk)
    return _send(request, workspace, delivering.take_again(delivery, timezone.now()))


def _send(request: SignedInRequest, workspace: Workspace, taken: Taken) -> HttpResponse:
    """Send a delivery now and show its result."""
    answer = send_now(taken)
    return _page(request, workspace, {"sent": taken.webhook_id, "outcome": answer, "words": outcome_of(answer)})


PARTS: dict[str, Callable[[SignedInRequest, Workspace], HttpResponse | None]] = {
    "add": _add,
    "change": _change,
    "on": _turn_on,
    "off": _turn_off,
    "secret": _renew_secret,
    "remove": _remove,
    "restore": _restore,
    "test": _test,
    "again": _again,
}


def outcome_of(answer: Answer) -> str:
    """Return a sentence about the result of a delivery that was just sent."""
    if not answer.problem:
        words = _("Delivered: the address answered %(status)s in %(ms)s ms.")
        return words % {"status": answer.status, "ms": answer.duration_ms}
    if answer.status is not None:
        words = _("Not delivered: the address answered %(status)s in %(ms)s ms.")
        return words % {"status": answer.status, "ms": answer.duration_ms}
    return _("Not delivered: %(reason)s") % {"reason": WebhookDelivery.Problem(answer.problem).label}


def _webhook_id(request: SignedInRequest) -> int:
    return number(request.POST.get("webhook", "")) or 0


def _page(
    request: SignedInRequest, workspace: Workspace, more: Values | None = None, status: int = 200
) -> HttpResponse:
    more = more or {}
    refused = more.get("refused", {})
    values = {
        "workspace": workspace,
        "webhooks": [_row(request, each, more) for each in service.webhooks_of(request.user, workspace.pk)],
        "new": _submitted_fields(request, "new") if "add" in refused else Fields("new"),
        "refused": {},
        **more,
    }
    return render(request, "workspace/webhooks.html", values, status=status)


def _submitted_fields(request: SignedInRequest, prefix: str) -> Fields:
    given = _read_form(request)
    return Fields(prefix, given.url, given.events, given.include_text, given.is_enabled)


def _row(request: SignedInRequest, row: Webhook, more: Values) -> Values:
    is_refused = "change" in more.get("refused", {}) and more.get("refused_id") == row.pk
    prefix = f"webhook-{row.pk}"
    stored = Fields(prefix, row.url, row.events, row.include_text, row.is_enabled)
    deliveries = [_delivery(each) for each in deliveries_of(row, SHOWN)]
    return {
        "row": row,
        "events": [WebhookEvent(each).label for each in row.events if each in WebhookEvent.values],
        "fields": _submitted_fields(request, prefix) if is_refused else stored,
        "is_open": is_refused,
        "version": request.POST.get("version", "") if is_refused else service.version_of(row),
        "deliveries": deliveries,
        "is_watched": more.get("sent") == row.pk,
    }


def _delivery(row: WebhookDelivery) -> Values:
    labels = {**dict(WebhookEvent.choices), TEST_EVENT: _("Test")}
    return {
        "row": row,
        "label": labels.get(row.event, row.event),
        "problem": WebhookDelivery.Problem(row.problem).label if row.problem else "",
        "attempts": ngettext("%(count)d attempt", "%(count)d attempts", row.attempts) % {"count": row.attempts},
    }
