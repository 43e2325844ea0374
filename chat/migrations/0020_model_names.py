"""Store the names of models and fields in the state of the migrations. Nothing changes in the database."""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.state import ProjectState


class NameModels(migrations.SeparateDatabaseAndState):
    """Change the state only, and render the models once afterwards instead of after each of the operations."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)
        super().state_forwards(app_label, state)


class Migration(migrations.Migration):
    dependencies = (("chat", "0019_user_session_state"),)

    operations = (
        NameModels(
            state_operations=[
                migrations.AlterModelOptions(
                    name="agentpreset",
                    options={
                        "ordering": ("position", "name"),
                        "verbose_name": "agent",
                        "verbose_name_plural": "agents",
                    },
                ),
                migrations.AlterModelOptions(
                    name="apitoken",
                    options={
                        "ordering": ("-created_at",),
                        "verbose_name": "API token",
                        "verbose_name_plural": "API tokens",
                    },
                ),
                migrations.AlterModelOptions(
                    name="erasure",
                    options={
                        "ordering": ("-requested_at", "-pk"),
                        "verbose_name": "erasure",
                        "verbose_name_plural": "erasures",
                    },
                ),
                migrations.AlterModelOptions(
                    name="invitation",
                    options={"verbose_name": "invitation", "verbose_name_plural": "invitations"},
                ),
                migrations.AlterModelOptions(
                    name="membership",
                    options={"verbose_name": "membership", "verbose_name_plural": "memberships"},
                ),
                migrations.AlterModelOptions(
                    name="securityevent",
                    options={
                        "default_permissions": ("view",),
                        "verbose_name": "security event",
                        "verbose_name_plural": "security events",
                    },
                ),
                migrations.AlterModelOptions(
                    name="session",
                    options={
                        "permissions": (("erase_session", "Can erase sessions for good"),),
                        "verbose_name": "session",
                        "verbose_name_plural": "sessions",
                    },
                ),
                migrations.AlterModelOptions(
                    name="share",
                    options={"verbose_name": "share", "verbose_name_plural": "shares"},
                ),
                migrations.AlterModelOptions(
                    name="user",
                    options={
                        "permissions": (
                            ("erase_user", "Can erase users for good"),
                            ("reset_second_factor", "Can reset the second factor of people"),
                        ),
                        "verbose_name": "person",
                        "verbose_name_plural": "people",
                    },
                ),
                migrations.AlterModelOptions(
                    name="workspace",
                    options={"verbose_name": "workspace", "verbose_name_plural": "workspaces"},
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="is_offered",
                    field=models.BooleanField(default=True, verbose_name="offered"),
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="max_rounds",
                    field=models.PositiveIntegerField(
                        default=25,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                        verbose_name="tool rounds",
                    ),
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="model",
                    field=models.CharField(blank=True, max_length=281, verbose_name="model"),
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="name",
                    field=models.CharField(
                        max_length=80,
                        unique=True,
                        validators=[django.core.validators.RegexValidator("\\A[A-Za-z0-9][A-Za-z0-9_.-]{0,79}\\Z")],
                        verbose_name="name",
                    ),
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="position",
                    field=models.PositiveIntegerField(default=0, verbose_name="place"),
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="thinking_budget",
                    field=models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1024),
                            django.core.validators.MaxValueValidator(128000),
                        ],
                        verbose_name="thinking budget",
                    ),
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="title",
                    field=models.CharField(blank=True, max_length=80, verbose_name="title"),
                ),
                migrations.AlterField(
                    model_name="agentpreset",
                    name="updated_at",
                    field=models.DateTimeField(auto_now=True, verbose_name="last changed"),
                ),
                migrations.AlterField(
                    model_name="apitoken",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="made"),
                ),
                migrations.AlterField(
                    model_name="apitoken",
                    name="expires_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="ends"),
                ),
                migrations.AlterField(
                    model_name="apitoken",
                    name="last_used_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="last used"),
                ),
                migrations.AlterField(
                    model_name="apitoken",
                    name="name",
                    field=models.CharField(max_length=80, verbose_name="name"),
                ),
                migrations.AlterField(
                    model_name="apitoken",
                    name="revoked_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="revoked"),
                ),
                migrations.AlterField(
                    model_name="apitoken",
                    name="scope",
                    field=models.CharField(
                        choices=[("read", "Read"), ("write", "Write")], default="read", max_length=5, verbose_name="may"
                    ),
                ),
                migrations.AlterField(
                    model_name="apitoken",
                    name="user",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
                migrations.AlterField(
                    model_name="erasure",
                    name="counts",
                    field=models.JSONField(default=dict, verbose_name="erased"),
                ),
                migrations.AlterField(
                    model_name="erasure",
                    name="finished_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="finished"),
                ),
                migrations.AlterField(
                    model_name="erasure",
                    name="kind",
                    field=models.CharField(
                        choices=[("session", "Session"), ("user", "User")], max_length=7, verbose_name="kind"
                    ),
                ),
                migrations.AlterField(
                    model_name="erasure",
                    name="requested_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="requested"),
                ),
                migrations.AlterField(
                    model_name="erasure",
                    name="requested_by",
                    field=models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="requested by",
                    ),
                ),
                migrations.AlterField(
                    model_name="erasure",
                    name="target",
                    field=models.CharField(max_length=32, verbose_name="id"),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="made"),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="created_by",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="made by",
                    ),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="expires_at",
                    field=models.DateTimeField(verbose_name="ends"),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="max_uses",
                    field=models.PositiveIntegerField(blank=True, null=True, verbose_name="for how many people"),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="role",
                    field=models.CharField(
                        choices=[("viewer", "Viewer"), ("editor", "Editor")], max_length=6, verbose_name="role"
                    ),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="session",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="chat.session",
                        verbose_name="session",
                    ),
                ),
                migrations.AlterField(
                    model_name="invitation",
                    name="uses",
                    field=models.PositiveIntegerField(db_default=0, default=0, verbose_name="used"),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="role",
                    field=models.CharField(
                        choices=[("owner", "Owner"), ("admin", "Admin"), ("member", "Member"), ("guest", "Guest")],
                        default="member",
                        max_length=10,
                        verbose_name="role",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="user",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
                migrations.AlterField(
                    model_name="membership",
                    name="workspace",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="chat.workspace",
                        verbose_name="workspace",
                    ),
                ),
                migrations.AlterField(
                    model_name="securityevent",
                    name="actor",
                    field=models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="actor",
                    ),
                ),
                migrations.AlterField(
                    model_name="securityevent",
                    name="address",
                    field=models.CharField(blank=True, max_length=64, verbose_name="address"),
                ),
                migrations.AlterField(
                    model_name="securityevent",
                    name="at",
                    field=models.DateTimeField(default=django.utils.timezone.now, verbose_name="time"),
                ),
                migrations.AlterField(
                    model_name="securityevent",
                    name="object_id",
                    field=models.CharField(blank=True, max_length=64, verbose_name="object"),
                ),
                migrations.AlterField(
                    model_name="securityevent",
                    name="object_type",
                    field=models.CharField(blank=True, max_length=40, verbose_name="kind of object"),
                ),
                migrations.AlterField(
                    model_name="securityevent",
                    name="person",
                    field=models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
                migrations.AlterField(
                    model_name="securityevent",
                    name="token_id",
                    field=models.BigIntegerField(null=True, verbose_name="API token"),
                ),
                migrations.AlterField(
                    model_name="session",
                    name="model",
                    field=models.CharField(blank=True, max_length=200, verbose_name="model"),
                ),
                migrations.AlterField(
                    model_name="session",
                    name="owner",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                migrations.AlterField(
                    model_name="session",
                    name="workspace",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sessions",
                        to="chat.workspace",
                        verbose_name="workspace",
                    ),
                ),
                migrations.AlterField(
                    model_name="share",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="made"),
                ),
                migrations.AlterField(
                    model_name="share",
                    name="role",
                    field=models.CharField(
                        choices=[("viewer", "Viewer"), ("editor", "Editor")], max_length=6, verbose_name="role"
                    ),
                ),
                migrations.AlterField(
                    model_name="share",
                    name="session",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares",
                        to="chat.session",
                        verbose_name="session",
                    ),
                ),
                migrations.AlterField(
                    model_name="share",
                    name="user",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
                migrations.AlterField(
                    model_name="user",
                    name="can_own_workspace",
                    field=models.BooleanField(
                        db_default=True, default=True, verbose_name="can have their own workspace"
                    ),
                ),
                migrations.AlterField(
                    model_name="user",
                    name="display_name",
                    field=models.CharField(blank=True, max_length=80, verbose_name="display name"),
                ),
                migrations.AlterField(
                    model_name="workspace",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="made"),
                ),
                migrations.AlterField(
                    model_name="workspace",
                    name="name",
                    field=models.CharField(max_length=120, verbose_name="name"),
                ),
            ]
        ),
    )
