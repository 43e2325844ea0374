"""Conditions for deleting users and workspaces in the admin, and the group of session managers."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.apps.registry import Apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.management import create_permissions
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Membership, User, Workspace

MANAGERS = "Session managers"
MANAGED = ("view_session", "change_session", "view_chatmessage", "change_chatmessage")


def make_managers(app_config: AppConfig, using: str, apps: Apps = installed, **options: Any) -> None:
    """Create the group with the permissions to read and edit sessions, once. Later changes by operators stay.

    Called after each migration, when tables or permissions may not exist yet, and after a flush, which passes no apps.
    """
    create_permissions(
        app_config, using=using, apps=apps, **options
    )  # the app that creates all permissions comes later
    try:
        groups, permissions = apps.get_model("auth", "Group").objects, apps.get_model("auth", "Permission").objects
    except LookupError:
        return
    managed = list(permissions.using(using).filter(content_type__app_label="chat", codename__in=MANAGED))
    with transaction.atomic(using=using):
        if len(managed) == len(MANAGED):
            group, is_new = groups.using(using).get_or_create(name=MANAGERS)
            if is_new:
                group.permissions.set(managed)


def reasons_to_keep_users(people: QuerySet[User]) -> list[str]:
    """Return the reasons why users cannot be deleted, with three queries."""
    owners = people.annotate(count=Count("sessions")).filter(count__gt=0).order_by("username")
    left = Membership.objects.filter(workspace=OuterRef("workspace")).exclude(user__in=people)
    owned = Membership.objects.filter(Exists(left), user__in=people, role=Membership.Role.OWNER)
    alone = owned.exclude(Exists(left.filter(role=Membership.Role.OWNER, user__is_active=True)))
    logged = people.filter(pk__in=LogEntry.objects.values("user")).exclude(sessions__isnull=False)
    return [
        *(_owns(user) for user in owners),
        *(
            _("%(name)s is the last owner of “%(workspace)s”.")
            % {"name": each.user.sender, "workspace": each.workspace.name}
            for each in alone.select_related("user", "workspace").order_by("user__username", "workspace__name")
        ),
        *(_("%(name)s appears in the audit log.") % {"name": user.sender} for user in logged.order_by("username")),
    ]


def reasons_to_keep_workspaces(workspaces: QuerySet[Workspace]) -> list[str]:
    """Return the reasons why workspaces cannot be deleted, one for each such workspace, with one query."""
    full = workspaces.annotate(count=Count("sessions")).filter(count__gt=0).order_by("name")
    return [
        ngettext("“%(name)s” contains %(count)d session.", "“%(name)s” contains %(count)d sessions.", each.count)
        % {"name": each.name, "count": each.count}
        for each in full
    ]


def is_last_administrator(user: User) -> bool:
    """Return whether this user is the only active administrator."""
    others = User.objects.filter(is_superuser=True, is_staff=True, is_active=True).exclude(pk=user.pk)
    return user.is_superuser and user.is_active and not others.exists()


def _owns(user: Any) -> str:
    message = ngettext("%(name)s owns %(count)d session.", "%(name)s owns %(count)d sessions.", user.count)
    return message % {"name": user.sender, "count": user.count}
