"""Messages, runs and attachments name the workspace of their session. The columns are added by ALTER TABLE, as in 0023.

On PostgreSQL a release without the column can go on writing while this one is started: triggers fill in what it leaves
out. The rows that are there already are filled by the next migration.
"""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from chat.overrides.sqlite.columns import AddColumn

TRIGGERS = {
    "run_workspace": "chat_sessionrun",
    "attachment_workspace": "chat_attachment",
    "message_workspace": "chat_chatmessage",
}
FUNCTION = """CREATE FUNCTION chat_workspace_of_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    SELECT workspace_id INTO NEW.workspace_id FROM chat_session WHERE id = NEW.session_id;
    RETURN NEW; END $$"""


def create(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(FUNCTION)
    for name, table in TRIGGERS.items():
        schema_editor.execute(
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW"
            " WHEN (NEW.workspace_id IS NULL) EXECUTE FUNCTION chat_workspace_of_session()"
        )


def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, table in TRIGGERS.items():
        schema_editor.execute(f"DROP TRIGGER {name} ON {table}")
    schema_editor.execute("DROP FUNCTION chat_workspace_of_session")


def column() -> models.BigIntegerField[int | None, int | None]:
    return models.BigIntegerField(editable=False, null=True)


class Migration(migrations.Migration):
    dependencies = [("chat", "0040_push_subscriptions")]

    operations = [
        AddColumn("sessionrun", "workspace_id", column()),
        AddColumn("attachment", "workspace_id", column()),
        AddColumn("chatmessage", "workspace_id", column()),
        migrations.RunPython(create, drop),
    ]
