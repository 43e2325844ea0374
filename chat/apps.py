"""The Django apps: the chat, and the admin with its own site."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate, pre_migrate


class ChatConfig(AppConfig):
    name = "chat"
    verbose_name = "Parley"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from chat import checks  # noqa: F401  # registers the system checks
        from chat.db import prepare_for_migrations, restore_time_limits
        from chat.services.people.staff import make_managers
        from chat.sign_in.events import connect

        pre_migrate.connect(prepare_for_migrations, sender=self)
        post_migrate.connect(restore_time_limits, sender=self)
        connect()
        post_migrate.connect(make_managers, sender=self)


class ParleyAdminConfig(AdminConfig):
    default_site = "chat.admin_site.ParleyAdminSite"
