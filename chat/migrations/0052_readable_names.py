"""Names that people read in the admin: of models, of columns, and of permissions that exist already.

No table changes, because no column does. Django names a permission only when it creates it.
"""

import django.db.models.deletion
from django.conf import settings
from django.contrib.auth import get_permission_codename
from django.db import DEFAULT_DB_ALIAS, migrations, models


def rename_permissions(apps, schema_editor):
    """Give each permission of Parley the name that it would get if Django created it now."""
    alias = schema_editor.connection.alias if schema_editor else DEFAULT_DB_ALIAS
    names = {}
    for model in apps.get_app_config("chat").get_models():
        options = model._meta
        own = {
            get_permission_codename(action, options): f"Can {action} {options.verbose_name_raw}"
            for action in options.default_permissions
        }
        for codename, name in {**own, **dict(options.permissions)}.items():
            names[options.model_name, codename] = name
    permissions = apps.get_model("auth", "Permission").objects.using(alias).select_related("content_type")
    for permission in permissions.filter(content_type__app_label="chat"):
        name = names.get((permission.content_type.model, permission.codename), permission.name)
        if name != permission.name:
            permissions.filter(pk=permission.pk).update(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0051_removed_mcp_servers"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.AlterModelOptions(
            "approvalrule", {"verbose_name": "tool rule", "verbose_name_plural": "tool rules"}
        ),
        migrations.AlterModelOptions("chatmessage", {"verbose_name": "message", "verbose_name_plural": "messages"}),
        migrations.AlterModelOptions(
            "dailyusage", {"verbose_name": "daily usage", "verbose_name_plural": "daily usage"}
        ),
        migrations.AlterModelOptions(
            "session",
            {
                "permissions": (("erase_session", "Can erase sessions permanently"),),
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
            },
        ),
        migrations.AlterModelOptions(
            "signinlink", {"verbose_name": "sign-in link", "verbose_name_plural": "sign-in links"}
        ),
        migrations.AlterModelOptions(
            "user",
            {
                "permissions": (
                    ("erase_user", "Can erase people permanently"),
                    ("reset_second_factor", "Can reset two-step verification of people"),
                ),
                "verbose_name": "person",
                "verbose_name_plural": "people",
            },
        ),
        migrations.AlterModelOptions(
            "webhookdelivery",
            {"ordering": ("-pk",), "verbose_name": "webhook delivery", "verbose_name_plural": "webhook deliveries"},
        ),
        migrations.AlterField(
            "agentpreset",
            "user",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="agents",
                to=settings.AUTH_USER_MODEL,
                verbose_name="created by",
            ),
        ),
        migrations.AlterField(
            "approvalrule",
            "user",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="added by",
            ),
        ),
        migrations.AlterField(
            "invitation", "max_uses", models.PositiveIntegerField(blank=True, null=True, verbose_name="maximum uses")
        ),
        migrations.AlterField(
            "invitation", "uses", models.PositiveIntegerField(db_default=0, default=0, verbose_name="times used")
        ),
        migrations.AlterField(
            "schedule",
            "owner",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="schedules",
                to=settings.AUTH_USER_MODEL,
                verbose_name="created by",
            ),
        ),
        migrations.AlterField(
            "workspaceinvitation", "max_uses", models.PositiveIntegerField(verbose_name="maximum uses")
        ),
        migrations.AlterField(
            "workspaceinvitation",
            "uses",
            models.PositiveIntegerField(db_default=0, default=0, verbose_name="times used"),
        ),
        migrations.RunPython(rename_permissions, migrations.RunPython.noop),
    ]
