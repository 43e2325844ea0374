"""Signing in to MCP servers of workspaces."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from chat.overrides.sqlite.columns import AddColumn

TEXT = models.TextField(blank=True, db_default="", default="")
STATUSES = [("", "not connected"), ("connected", "connected"), ("expired", "expired")]


class Migration(migrations.Migration):
    dependencies = [("chat", "0038_elicitation")]

    operations = [
        AddColumn("mcpserver", "oauth_client", TEXT),
        AddColumn("mcpserver", "sign_in", TEXT.clone()),
        AddColumn(
            "mcpserver",
            "sign_in_status",
            models.CharField(blank=True, choices=STATUSES, db_default="", default="", max_length=9),
        ),
        AddColumn(
            "mcpserver",
            "signed_in_by",
            models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        AddColumn("mcpserver", "renewing_until", models.DateTimeField(blank=True, null=True)),
    ]
