"""The admin site. It groups its pages, shows times in the viewer's time zone, and answers 400 to impossible values.

This module is not in the package `chat.admin`, because Django imports that package to register pages with the site.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import BadRequest, FieldDoesNotExist
from django.db import DataError, NotSupportedError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.zones import zone_of

# The groups of the navigation: label, name, and the models with their icons.
GROUPS: list[tuple[str, Any, dict[str, str]]] = [
    (
        "sessions",
        _("Sessions and agents"),
        {
            "Session": "message-square",
            "AgentPreset": "bot",
            "McpServer": "wrench",
            "Share": "users",
            "Invitation": "link",
            "ApprovalRule": "list-checks",
        },
    ),
    (
        "people",
        _("People and access"),
        {
            "User": "user",
            "Group": "shield",
            "Workspace": "panel-left",
            "WorkspaceInvitation": "link",
            "ApiToken": "key",
        },
    ),
    ("operation", _("Operations"), {"SessionRun": "loader-circle", "Schedule": "clock", "Worker": "cpu"}),
    ("logs", _("Logs"), {"SecurityEvent": "lock", "LogEntry": "history", "Erasure": "trash-2"}),
]

# Errors of Django's queries for values that a column cannot have, such as a number of more than 64 bits or a NUL. The
# admin's forms, lists and actions query for values of a request without checking them.
UNUSABLE = (DataError, FieldDoesNotExist, NotSupportedError, OverflowError, ValueError)


class ParleyAdminSite(AdminSite):
    site_header = site_title = _("Parley admin")
    index_title = _("Overview")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the models that the user may see by GROUPS instead of by app. Models without a group come last."""
        models = {model["object_name"]: model for app in super().get_app_list(request) for model in app["models"]}
        groups = []
        for label, name, icons in GROUPS:
            known = [models.pop(model) | {"icon": icon} for model, icon in icons.items() if model in models]
            groups.append(_group(label, name, known))
        groups.append(_group("others", _("Others"), [model | {"icon": "file"} for model in models.values()]))
        return [group for group in groups if group["models"]]

    def app_index(self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None) -> Any:
        """Redirect to the index, because the groups are not Django's apps."""
        return HttpResponseRedirect(reverse("admin:index", current_app=self.name))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Answer 401 to the search of a field after the login has ended.

        The script of the field would follow Django's redirect, and fail at the sign-in page.
        """
        search = self.admin_view(self.autocomplete_view)

        def search_or_refuse(request: HttpRequest) -> HttpResponseBase:
            return search(request) if self.has_permission(request) else HttpResponse(status=401)

        return [path("autocomplete/", search_or_refuse, name="autocomplete"), *super().get_urls()]

    def admin_view(self, view: Callable[..., HttpResponseBase], cacheable: bool = False) -> Any:
        """Wrap a view, so that filters such as “today” mean the viewer's day, and impossible values get 400."""

        @wraps(view)
        def in_zone(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with timezone.override(zone_of(request)):
                try:
                    response = view(request, *args, **kwargs)
                    return response.render() if isinstance(response, SimpleTemplateResponse) else response
                except UNUSABLE as error:
                    if isinstance(error, DataError) or _is_raised_by_queries(error):
                        raise BadRequest(f"Unusable value: {error}") from error
                    raise

        return super().admin_view(in_zone, cacheable)


def _is_raised_by_queries(error: Exception) -> bool:
    """Return whether Django's database layer raised an error, rather than a view or other code."""
    frames = [frame for frame, _line in walk_tb(error.__traceback__)]
    module: str = frames[-1].f_globals.get("__name__", "") if frames else ""
    return module.startswith("django.db.")


def _group(label: str, name: Any, models: list[Any]) -> dict[str, Any]:
    """Return a group in the form of Django's apps."""
    return {"app_label": label, "name": name, "app_url": "", "has_module_perms": True, "models": models}
