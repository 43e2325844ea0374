"""The pages on which one message of a session is edited, or a new one is added after it."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _

from chat.admin import audit_log, session_page
from chat.admin.actions import message_of
from chat.admin.fields import Clash
from chat.admin.message_forms import AddForm, MessageForm, form_of, values_of
from chat.admin.message_rows import label_of, page_with, status_of
from chat.admin.permissions import (
    Pages,
    StaffRequest,
    may_change,
    may_change_messages,
    require_messages,
    session_or_404,
)
from chat.admin.versions import versions_of
from chat.errors import NoSuchMessage, ServiceError
from chat.models import TURN_MARKERS, ChatMessage, MessageStatus, Session, attached_to
from chat.services.messages import editing


def edit(request: StaffRequest, session_id: str, message_id: str) -> HttpResponse:
    """A message whole, in the form that fits it, with its history."""
    session = session_or_404(request, session_id, needs_change=request.method == "POST")
    require_messages(request.user, change=request.method == "POST")
    row = _row_or_404(session, message_id)
    form_class = form_of(row)
    if request.method != "POST":
        return _page(request, row, form_class(initial=values_of(row)) if form_class else None)
    if form_class is None:
        raise Http404
    form = form_class(request.POST, initial=values_of(row))
    refused = _save(request, row, form) if form.is_valid() else None
    if refused is not None and refused.code == "stale":
        return _page(request, row, _knowing(form, refused), form.present(refused.details["current"]))
    if form.errors:
        return _page(request, row, form)
    return HttpResponseRedirect(_place(row))


def add(request: StaffRequest, session_id: str) -> HttpResponse:
    """A new message after another one; `after` empty: before all."""
    session = session_or_404(request, session_id, needs_change=True)
    require_messages(request.user, change=True)
    after_id = request.GET.get("after", "")
    after = _row_or_404(session, after_id) if after_id else None
    audit_log.note_reading(request.user, session, opens=False)
    form = AddForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid() and (row := _add(request, session, after, form)) is not None:
        return HttpResponseRedirect(_place(row))
    values = {
        **session_page.frame(request, session, _("Add a message")),
        "form": form,
        "after": after,
        "after_label": label_of(after) if after else "",
        "back": _place(after) if after else session_page.address(session.pk, "?p=1"),
    }
    return render(request, "admin/chat/session/add_message.html", values)


def _row_or_404(session: Session, message_id: str) -> ChatMessage:
    try:
        return message_of(session, message_id)
    except NoSuchMessage as refused:
        raise Http404(str(refused)) from refused


def _save(request: StaffRequest, row: ChatMessage, form: MessageForm) -> ServiceError | None:
    """Save a valid form and say so; a refusal becomes its error."""
    changed = [form.logged[name] for name in form.changed_data if name in form.logged]
    if not changed:
        messages.info(request, _("Nothing was changed."))
        return None
    try:
        with transaction.atomic():
            form.save(row, request.user)
            audit_log.note_message(request.user, row, "changed", changed)
    except ServiceError as refused:
        form.add_error(None, _reason(row, refused))
        return refused
    messages.success(request, _("The message was saved. The model gets it with its next response."))
    return None


def _add(request: StaffRequest, session: Session, after: ChatMessage | None, form: AddForm) -> ChatMessage | None:
    try:
        with transaction.atomic():
            after_id = after.pk if after else None
            row = editing.add(session=session, author=request.user, after_id=after_id, **form.cleaned_data)
            audit_log.note_message(request.user, row, "added")
    except ServiceError as refused:
        form.add_error(None, _reason(after, refused))
        return None
    messages.success(request, _("The message was added. The model gets it with its next response."))
    return row


def _reason(row: ChatMessage | None, refused: ServiceError) -> str:
    """Why something was refused, and what to do about it where the service cannot know."""
    if isinstance(refused, NoSuchMessage) and row is not None:
        return _("The message was removed while you were editing. Your text is safe: restore the message first.")
    if refused.code == "stale":
        return _("Someone else edited this message while you were typing. Save again to replace their version.")
    return refused.message


def _knowing(form: MessageForm, refused: ServiceError) -> MessageForm:
    """The same form with what was typed in it, for somebody who knows now what stands there."""
    data = form.data.copy()  # type: ignore[attr-defined]  # a form that was sent has a QueryDict
    data["revision"] = str(refused.details["revision"])
    again = type(form)(data, initial=form.initial)
    again.add_error(None, form.non_field_errors()[0])
    return again


def _page(
    request: StaffRequest, row: ChatMessage, form: MessageForm | None, present: dict[str, str] | None = None
) -> HttpResponse:
    session = row.session
    audit_log.note_reading(request.user, session, opens=False)
    may_write = may_change(request.user, session) and may_change_messages(request.user)
    can_write = may_write and session.status == Session.Status.ACTIVE
    if form is not None and not form.is_bound:
        for field in form.fields.values():
            field.disabled = not can_write or row.removed_at is not None
    values = {
        **session_page.frame(request, session, label_of(row)),
        "row": row,
        "status": status_of(row),
        "files": attached_to(row),
        "form": form,
        "clashes": [Clash(name, str(form.fields[name].label), text) for name, text in (present or {}).items()]
        if form
        else [],
        "can_write": can_write,
        "can_save": can_write and form is not None and (row.removed_at is None or form.is_bound),
        "can_fork": may_change(request.user, session) and row.sequence is not None,
        "can_exclude": row.type in editing.SAID and row.status != MessageStatus.QUEUED,
        "is_marker": row.type in TURN_MARKERS,
        "versions": versions_of(row),
        "back": _place(row),
    }
    return render(request, "admin/chat/session/message.html", values)


def _place(row: ChatMessage) -> str:
    """Where a message stands on its session's page; among the removed ones if it is one."""
    sequence = ChatMessage.objects.filter(pk=row.pk).values_list("sequence", flat=True).first()
    if sequence is None:
        return session_page.address(row.session_id, f"?{'removed=' if row.removed_at else 'p='}#{row.pk}")
    row.sequence = sequence
    return session_page.address(row.session_id, f"?p={page_with(row)}#{row.pk}")


PAGES: Pages = {
    "<str:session_id>/messages/add/": (add, "chat_session_add_message"),
    "<str:session_id>/messages/<str:message_id>/": (edit, "chat_session_message"),
}
