"""The admin site: its pages in groups, times in the zone of the viewer's browser, and 400 for impossible values.

It is not part of the package `chat.admin`, which Django imports to register pages at the site.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import BadRequest, FieldDoesNotExist
from django.db import DataError, NotSupportedError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.zones import zone_of

# The groups of the navigation: their names, and their models with the icon of each.
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

# What Django's queries raise for values that a column cannot have, as a number of more than 64 bits or a NUL. Its
# forms, lists and actions look up what a request names without a check of their own.
UNUSABLE = (DataError, FieldDoesNotExist, NotSupportedError, OverflowError, ValueError)


class ParleyAdminSite(AdminSite):
    site_header = site_title = _("Parley admin")
    index_title = _("Overview")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the models that the user may see in GROUPS instead of by app; models of no group come last."""
        models = {model["object_name"]: model for app in super().get_app_list(request) for model in app["models"]}
        groups = []
        for label, name, icons in GROUPS:
            known = [models.pop(model) | {"icon": icon} for model, icon in icons.items() if model in models]
            groups.append(_group(label, name, known))
        groups.append(_group("others", _("Others"), [model | {"icon": "file"} for model in models.values()]))
        return [group for group in groups if group["models"]]

    def app_index(self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None) -> Any:
        """Redirect to the index: the groups are not Django's apps."""
        return HttpResponseRedirect(reverse("admin:index", current_app=self.name))

    def admin_view(self, view: Callable[..., HttpResponseBase], cacheable: bool = False) -> Any:
        """Wrap a view: filters such as “today” mean the viewer's day, and values that no row can have get 400."""

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
    """Return whether Django's database layer raised an error, and not our code or a view's."""
    frames = [frame for frame, _line in walk_tb(error.__traceback__)]
    module: str = frames[-1].f_globals.get("__name__", "") if frames else ""
    return module.startswith("django.db.")


def _group(label: str, name: Any, models: list[Any]) -> dict[str, Any]:
    """Return a group in the form of Django's apps."""
    return {"app_label": label, "name": name, "app_url": "", "has_module_perms": True, "models": models}
