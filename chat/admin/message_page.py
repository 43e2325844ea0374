"""The pages on which staff edit a message of a session or add a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from chat.admin import audit_log, session_page
from chat.admin.fields import ArgumentsField, Conflict, LongTextField, format_json, normalize_newlines
from chat.admin.permissions import (
    Pages,
    StaffRequest,
    find_message,
    may_change,
    may_change_messages,
    require_messages,
    session_or_404,
)
from chat.admin.revised import SeenForm
from chat.admin.session_page import (
    label_of,
    may_be_edited,
    may_be_removed,
    may_be_restored,
    page_number,
    status_of,
    title_of,
)
from chat.errors import NoSuchMessage, ServiceError
from chat.models import (
    CONTENT_TYPES,
    TURN_MARKERS,
    ChatMessage,
    MessageRevision,
    MessageRole,
    MessageStatus,
    MessageType,
    Session,
    User,
    attached_to,
)
from chat.services.idempotency import MAX_KEY_LENGTH
from chat.services.messages import editing
from chat.services.messages.editing import TEXT_TYPES
from chat.services.transaction import SessionTransaction

# The maximum number of revisions that the page shows, and of characters in the text of each.
MAX_VERSIONS = 50
MAX_VERSION_LENGTH = 20_000
ROLES = [
    (MessageRole.USER.value, gettext_lazy("User")),
    (MessageRole.ASSISTANT.value, gettext_lazy("Assistant")),
    (MessageRole.SYSTEM.value, gettext_lazy("System")),
]


class MessageForm(SeenForm):
    """The form for one type of message. A hidden field has the revision of the message that the user sees.

    The form also compares the values, because a message can change without a new version in its history: while the
    agent writes it, and by an erasure.
    """

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)
    # The names of the fields in the log, which stores them in English.
    logged = {  # noqa: RUF012  # a class attribute, as in Django
        "text": gettext_noop("Text"),
        "arguments": gettext_noop("Arguments"),
        "result": gettext_noop("Result"),
        "is_error": gettext_noop("Failed"),
    }
    compared = logged

    def save(self, row: ChatMessage, author: User) -> None:
        """Save the changes through the services. Raise ServiceError."""
        raise NotImplementedError

    def conflicts(self, row: ChatMessage) -> list[Conflict]:
        """Return the fields whose stored value is neither the one that the user has seen nor the entered one."""
        present = values_of(row)
        names = self.changed_since(present)
        return [Conflict(name, str(self.fields[name].label), _shown(present[name])) for name in names]


class TextForm(MessageForm):
    text = LongTextField(rows=16, label=gettext_lazy("Text"))

    def save(self, row: ChatMessage, author: User) -> None:
        editing.edit(
            session=row.session,
            author=author,
            message_id=row.pk,
            text=self.cleaned_data["text"],
            seen=self.cleaned_data["revision"],
            as_staff=True,
        )


class ToolForm(MessageForm):
    arguments = ArgumentsField(label=gettext_lazy("Arguments"), help_text=gettext_lazy("A JSON object."))
    result = LongTextField(label=gettext_lazy("Result"), help_text=gettext_lazy("The result that the model gets."))
    is_error = forms.BooleanField(label=gettext_lazy("The call failed"), required=False)

    def save(self, row: ChatMessage, author: User) -> None:
        # The form has other line breaks than a result that has carriage returns.
        present: dict[str, Any] = {"arguments": row.arguments or {}, "result": row.result, "is_error": row.is_error}
        values = {name: self.cleaned_data[name] if name in self.changed_data else present[name] for name in present}
        seen = self.cleaned_data["revision"]
        editing.edit_tool_call(session=row.session, author=author, message_id=row.pk, seen=seen, **values)


class AddForm(forms.Form):
    """The form for a new message. Its key prevents adding the message twice if the form is sent again."""

    key = forms.CharField(widget=forms.HiddenInput, required=False, max_length=MAX_KEY_LENGTH)
    role = forms.ChoiceField(
        choices=ROLES,
        label=gettext_lazy("Author"),
        help_text=gettext_lazy(
            "A user message is sent in your name. A system message before all others replaces the system prompt."
        ),
    )
    text = LongTextField(rows=12, label=gettext_lazy("Text"))


def form_of(row: ChatMessage) -> type[MessageForm] | None:
    """Return the form for a message, or None if its type cannot be edited."""
    if row.type == MessageType.TOOL_GROUP:
        return ToolForm
    return TextForm if row.type in TEXT_TYPES else None


def values_of(row: ChatMessage) -> dict[str, Any]:
    """Return the form's initial values for a message."""
    return {
        "revision": row.revision,
        "text": normalize_newlines(row.text),
        "arguments": format_json(row.arguments),
        "result": normalize_newlines(row.result),
        "is_error": row.is_error,
    }


def _shown(value: str | bool) -> str:
    return value if isinstance(value, str) else _("Yes") if value else _("No")


@dataclass(frozen=True, slots=True)
class Version:
    """One change of a message, for display. `before` is the content before an edit, or "" for other changes."""

    kind: str
    author: str
    changed_at: datetime
    before: str


def versions_of(row: ChatMessage) -> list[Version]:
    """Return the latest changes of a message, newest first. Runs one query."""
    records = MessageRevision.objects.filter(message=row).select_related("user").order_by("-id")
    return [_version(record) for record in records[:MAX_VERSIONS]]


def _version(record: MessageRevision) -> Version:
    before: dict[str, Any] = record.before if isinstance(record.before, dict) else {}
    return Version(
        kind=_kind_names()[record.kind],
        # Revisions of imported messages have no user, but the author's name.
        author=record.user.sender if record.user else str(before.get("by") or "—"),
        changed_at=record.created_at,
        before=_content(before)[:MAX_VERSION_LENGTH] if record.kind == MessageRevision.Kind.EDIT else "",
    )


def _content(before: dict[str, Any]) -> str:
    tool = before.get("tool")
    if isinstance(tool, dict):
        return f"{format_json(tool.get('arguments'))}\n\n{tool.get('result', '')}"
    return str(before.get("text", ""))


def _kind_names() -> dict[str, str]:
    kinds = MessageRevision.Kind
    return {
        kinds.ADD: _("Added"),
        kinds.EDIT: _("Edited"),
        kinds.WITHDRAW: _("Removed from queue"),
        kinds.REMOVE: _("Removed"),
        kinds.RETRY: _("Replaced by a retry"),
        kinds.RESTORE: _("Restored"),
        kinds.EXCLUDE: _("Excluded from context"),
        kinds.INCLUDE: _("Included in context"),
    }


def edit(request: StaffRequest, session_id: str, message_id: str) -> HttpResponse:
    """Show a message with its form and its history, or save the form."""
    session = session_or_404(request, session_id, needs_change=request.method == "POST")
    require_messages(request.user, change=request.method == "POST")
    row = _row_or_404(session, message_id)
    form_class = form_of(row)
    if request.method != "POST":
        return _page(request, row, form_class(initial=values_of(row)) if form_class else None)
    if form_class is None:
        raise Http404
    form = form_class(request.POST, initial=values_of(row))
    error = _save(request, row, form) if form.is_valid() else None
    if error is not None and error.code == "stale":
        return _page(request, row, _with_present_values(form, row), form.conflicts(row))
    if form.errors:
        return _page(request, row, form)
    return HttpResponseRedirect(_url_of(row))


def add(request: StaffRequest, session_id: str) -> HttpResponse:
    """Add a message after the message `after` in the query, or before all messages if it is empty."""
    session = session_or_404(request, session_id, needs_change=True)
    require_messages(request.user, change=True)
    after_id = request.GET.get("after", "")
    after = _row_or_404(session, after_id) if after_id else None
    audit_log.log_reading(request.user, session, is_new=False)
    form = AddForm(request.POST if request.method == "POST" else None, initial={"key": uuid4().hex})
    if request.method == "POST" and form.is_valid() and (row := _add(request, session, after, form)) is not None:
        return HttpResponseRedirect(_url_of(row))
    values = {
        **session_page.frame(request, session, _("Add a message")),
        "form": form,
        "after": after,
        "after_title": title_of(after) if after else "",
        "back": _url_of(after) if after else session_page.url_of(session.pk, "?p=1"),
    }
    return render(request, "admin/chat/session/add_message.html", values)


def _row_or_404(session: Session, message_id: str) -> ChatMessage:
    try:
        return find_message(session, message_id)
    except NoSuchMessage as error:
        raise Http404(str(error)) from error


def _save(request: StaffRequest, row: ChatMessage, form: MessageForm) -> ServiceError | None:
    """Save a valid form. A ServiceError becomes an error of the form and is returned."""
    changed = [form.logged[name] for name in form.changed_data if name in form.logged]
    if not changed:
        messages.info(request, _("Nothing was changed."))
        return None
    try:
        with transaction.atomic():
            SessionTransaction.lock(row.session_id)
            _read_again(row)
            if form.conflicts(row):
                raise ServiceError("stale", _("This message was edited in the meantime."))
            form.save(row, request.user)
            audit_log.log_message(request.user, row, "changed", changed)
    except ServiceError as error:
        form.add_error(None, _error_text(row, error))
        return error
    messages.success(request, _("The message was saved. The model gets it with its next response."))
    return None


def _read_again(row: ChatMessage) -> None:
    try:
        row.refresh_from_db()
    except ChatMessage.DoesNotExist as error:  # an erasure of its user or of the session deleted it
        raise NoSuchMessage from error


def _add(request: StaffRequest, session: Session, after: ChatMessage | None, form: AddForm) -> ChatMessage | None:
    try:
        with transaction.atomic():
            after_id = after.pk if after else None
            row, repeated = editing.add(session=session, author=request.user, after_id=after_id, **form.cleaned_data)
            if not repeated:
                audit_log.log_message(request.user, row, "added")
    except ServiceError as error:
        form.add_error(None, _error_text(after, error))
        return None
    messages.success(request, _("The message was added. The model gets it with its next response."))
    return row


def _error_text(row: ChatMessage | None, error: ServiceError) -> str:
    """Return the text of an error, with advice for this page if it depends on the page."""
    if isinstance(error, NoSuchMessage) and row is not None:
        return _("The message was removed while you were editing. Your text is safe: restore the message first.")
    if error.code == "stale":
        return _("This message has changed since you opened the form. Save again to replace the saved version.")
    return error.message


def _with_present_values(form: MessageForm, row: ChatMessage) -> MessageForm:
    """Return the form with its input, so that saving it again overwrites the values that the page shows.

    Fields that the user has not changed get their present values.
    """
    data = form.data.copy()  # type: ignore[attr-defined]  # the data of a submitted form is a QueryDict
    for name, value in values_of(row).items():
        if name in form.compared and name in form.fields:
            data[f"initial-{name}"] = form.digest(name, value)
        if name not in form.changed_data:
            data[name] = str(value)
    again = type(form)(data, initial=form.initial)
    again.add_error(None, form.non_field_errors()[0])
    return again


def _page(
    request: StaffRequest, row: ChatMessage, form: MessageForm | None, conflicts: Sequence[Conflict] = ()
) -> HttpResponse:
    session = row.session
    audit_log.log_reading(request.user, session, is_new=False)
    may_write = may_change(request.user, session) and may_change_messages(request.user)
    can_write = may_write and session.status == Session.Status.ACTIVE
    can_edit = can_write and row.removed_at is None and may_be_edited(row, request.user)
    if form is not None and not form.is_bound:
        for field in form.fields.values():
            field.disabled = not can_edit
    values = {
        **session_page.frame(request, session, title_of(row)),
        "row": row,
        "label": label_of(row),
        "status": status_of(row),
        "files": attached_to(row),
        "form": form,
        "conflicts": conflicts,
        "can_write": can_write,
        "can_save": form is not None and (can_edit or (can_write and form.is_bound)),
        "can_fork": may_change(request.user, session) and row.sequence is not None,
        "can_remove": may_be_removed(row),
        "can_restore": may_be_restored(row),
        "can_exclude": row.type in CONTENT_TYPES and row.status != MessageStatus.QUEUED,
        "is_marker": row.type in TURN_MARKERS,
        "versions": versions_of(row),
        "back": _url_of(row),
    }
    return render(request, "admin/chat/session/message.html", values)


def _url_of(row: ChatMessage) -> str:
    """Return the URL of the session's page that lists a message, in the conversation or among the removed ones."""
    sequence = ChatMessage.objects.filter(pk=row.pk).values_list("sequence", flat=True).first()
    if sequence is None:
        return session_page.url_of(row.session_id, f"?{'removed=' if row.removed_at else 'p='}#{row.pk}")
    row.sequence = sequence
    return session_page.url_of(row.session_id, f"?p={page_number(row)}#{row.pk}")


PAGES: Pages = {
    "<str:session_id>/messages/add/": (add, "chat_session_add_message"),
    "<str:session_id>/messages/<str:message_id>/": (edit, "chat_session_message"),
}
