"""Sessions in the admin: the list of all sessions, and the routes to the pages of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from chat.admin import actions, audit_log, erasures, exports, message_page, session_page
from chat.admin.base import HiddenColumns
from chat.admin.permissions import Pages, StaffRequest, may_read_messages, title_for
from chat.admin.session_list import (
    BegunFilter,
    LastActiveFilter,
    ModelFilter,
    OwnerFilter,
    RunStateFilter,
    SessionList,
    StatusFilter,
    TwoStepPaginator,
    WorkspaceFilter,
    state_badge,
)
from chat.models import SecurityEvent, Session, User
from chat.queries.search import sessions_with
from chat.rendering.text.formatting import count, moment
from chat.services.people.security_log import Kind, record

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Session]
else:
    Admin = admin.ModelAdmin

# The maximum number of characters of a search term in the security log.
MAX_LOGGED_LENGTH = 200
# The query parameters of further pages of a list.
PAGE_PARAMETERS = {"p", "all"}


@admin.register(Session)
class SessionAdmin(HiddenColumns, Admin):
    # Titles are only searched, because searches are logged.
    hidden_columns = ("title", "system_prompt", "config")
    list_display = ("named", "state", "owner", "messages", "tokens", "model", "active", "workspace")
    list_filter = (
        StatusFilter,
        RunStateFilter,
        WorkspaceFilter,
        OwnerFilter,
        ModelFilter,
        ("updated_at", LastActiveFilter),
        ("created_at", BegunFilter),
    )
    list_per_page = list_max_show_all = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    ordering = ("-updated_at",)
    # Django shows the search field if this is set. get_search_results decides what is searched.
    search_fields = ("title",)
    actions = (  # type: ignore[assignment]  # they take a StaffRequest: the admin site lets only staff in
        actions.stop,
        actions.archive,
        actions.unarchive,
        actions.undelete,
        actions.export_json,
        actions.export_markdown,
        erasures.erase_sessions,
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        return super().get_queryset(request).filter(building_until=None)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Session | None = None) -> bool:
        return False

    def has_read_messages_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run the actions that export sessions."""
        return may_read_messages(request.user)

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run the action that erases sessions."""
        return request.user.has_perm("chat.erase_session")

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show ids instead of titles to staff who may not read messages."""
        shown = "named" if may_read_messages(request.user) else "numbered"
        return [shown, *self.list_display[1:]]

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        return [list_display[0]]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        session = self.get_object(request, unquote(object_id))
        name = title_for(request.user, session) if session else ""
        title = {"session_title": name, "title": _("Change history: %s") % name}
        return super().history_view(request, object_id, {**title, **(extra_context or {})})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[SessionList]:
        return SessionList

    def get_paginator(self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any) -> Any:
        """Return a paginator for the list of sessions, or for the log entries of one session."""
        paginator_class = TwoStepPaginator if queryset.model is Session else Paginator
        return paginator_class(queryset, *args, **kwargs)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Session], search_term: str
    ) -> tuple[QuerySet[Session], bool]:
        in_messages = may_read_messages(request.user)
        if search_term and isinstance(request.user, User):
            words = search_term.replace("\0", "")[:MAX_LOGGED_LENGTH]
            is_further_page = bool(request.GET.keys() & PAGE_PARAMETERS)
            _log_search(request.user, words, "messages" if in_messages else "titles", is_further_page=is_further_page)
        return sessions_with(search_term, queryset, in_messages=in_messages), False

    def get_urls(self) -> list[URLPattern]:
        pages: Pages = {**session_page.PAGES, **message_page.PAGES, **actions.PAGES, **exports.PAGES}
        urls = [path(route, self.admin_site.admin_view(page), name=name) for route, (page, name) in pages.items()]
        return [*urls, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return session_page.show(cast("StaffRequest", request), object_id, self)

    @admin.display(description=_("title"), ordering="title")
    def named(self, session: Session) -> str:
        return session.title or str(_("Untitled session"))

    @admin.display(description=_("session"), ordering="pk")
    def numbered(self, session: Session) -> str:
        return session.pk

    @admin.display(description=_("state"))
    def state(self, session: Session) -> SafeString:
        return state_badge(session)

    @admin.display(description=_("messages"))
    def messages(self, session: Session) -> str:
        return count(session.message_count)  # type: ignore[attr-defined]  # read_sessions sets it

    @admin.display(description=_("tokens"), ordering="total_tokens")
    def tokens(self, session: Session) -> str:
        return count(session.total_tokens)

    @admin.display(description=_("last active"), ordering="updated_at")
    def active(self, session: Session) -> str:
        return moment(session.updated_at)


def _log_search(user: User, words: str, of: str, *, is_further_page: bool) -> None:
    """Log a search in the security log, unless it is a further page of a search that was logged within SAME_VISIT."""
    if is_further_page:
        since = timezone.now() - audit_log.SAME_VISIT
        logged = SecurityEvent.objects.filter(kind=Kind.ADMIN_SEARCH, actor=user, at__gte=since)
        if logged.filter(details__words=words, details__of=of).exists():
            return
    record(Kind.ADMIN_SEARCH, actor=user, words=words, of=of)
