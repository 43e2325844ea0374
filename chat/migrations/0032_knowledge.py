"""Files of a workspace for its agents, as passages of text with an index that the database keeps itself.

`words` has the text as `chat/files/passages.py` cuts it, so that both databases find the same. SQLite: an FTS5 table
that takes the words from the passages by triggers. PostgreSQL: a generated column with a GIN index; its configuration
is English for its stop words and endings, and the words of other languages are found as they are.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import chat.ids
import chat.models.knowledge
from chat.overrides.sqlite.columns import AddColumn

SQLITE = [
    """CREATE VIRTUAL TABLE chat_knowledge_search USING fts5(words, content='chat_knowledgepassage',
    content_rowid='id', tokenize='porter unicode61')""",
    """CREATE TRIGGER knowledge_search_insert AFTER INSERT ON chat_knowledgepassage BEGIN
    INSERT INTO chat_knowledge_search(rowid, words) VALUES (NEW.id, NEW.words); END""",
    """CREATE TRIGGER knowledge_search_delete AFTER DELETE ON chat_knowledgepassage BEGIN
    INSERT INTO chat_knowledge_search(chat_knowledge_search, rowid, words) VALUES ('delete', OLD.id, OLD.words); END""",
]
DROP_SQLITE = [
    "DROP TRIGGER knowledge_search_insert",
    "DROP TRIGGER knowledge_search_delete",
    "DROP TABLE chat_knowledge_search",
]
POSTGRESQL = [
    """ALTER TABLE chat_knowledgepassage ADD COLUMN vector tsvector
    GENERATED ALWAYS AS (to_tsvector('english', words)) STORED""",
    "CREATE INDEX knowledge_search ON chat_knowledgepassage USING gin (vector)",
]
DROP_POSTGRESQL = ["DROP INDEX knowledge_search", "ALTER TABLE chat_knowledgepassage DROP COLUMN vector"]


def create(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in DROP_SQLITE if schema_editor.connection.vendor == "sqlite" else DROP_POSTGRESQL:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("chat", "0031_workspace_rules")]

    operations = [
        AddColumn("agentpreset", "knowledge", models.JSONField(blank=True, db_default=[], default=list)),
        migrations.CreateModel(
            name="KnowledgeFile",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.ids.knowledge_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=255, verbose_name="name")),
                ("kind", models.CharField(choices=[("pdf", "Pdf"), ("html", "Html"), ("text", "Text")], max_length=5)),
                ("media_type", models.CharField(max_length=100)),
                ("size", models.PositiveBigIntegerField()),
                ("pages", models.PositiveIntegerField(blank=True, null=True)),
                ("characters", models.PositiveIntegerField()),
                ("passage_count", models.PositiveIntegerField()),
                ("is_cut", models.BooleanField(db_default=False, default=False)),
                ("file", models.FileField(max_length=255, upload_to=chat.models.knowledge.knowledge_place)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "added_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="knowledge", to="chat.workspace"
                    ),
                ),
            ],
            options={
                "verbose_name": "knowledge file",
                "verbose_name_plural": "knowledge files",
                "ordering": ("name",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["pdf", "html", "text"])), name="knowledge_kind"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at__isnull", True)),
                        fields=("workspace", "name"),
                        name="knowledge_name_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KnowledgePassage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("page", models.PositiveIntegerField(blank=True, null=True)),
                ("text", models.TextField()),
                ("words", models.TextField()),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passages",
                        to="chat.knowledgefile",
                    ),
                ),
            ],
            options={
                "verbose_name": "passage",
                "verbose_name_plural": "passages",
                "ordering": ("file", "number"),
                "constraints": [models.UniqueConstraint(fields=("file", "number"), name="knowledge_passage_once")],
            },
        ),
        migrations.RunPython(create, drop),
    ]
