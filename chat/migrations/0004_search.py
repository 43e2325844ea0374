"""Full text of messages, kept by the database itself, and when a session was archived.

Only what is live and finished is indexed: an answer that is being written costs nothing until its end.

SQLite: an FTS5 table of trigrams, which finds parts of words and CJK text alike. It is contentless (a text is stored
once, in its message); `chat_searchdoc` gives each message its number in it, in the order of time. The triggers stand on
chat_chatmessage: like those of 0002 they must be made again by a migration that rebuilds that table.

PostgreSQL: an index of trigrams (pg_trgm) of what Django's `icontains` asks, and not tsvector: that one cuts texts into
words of one language, and finds nothing in the middle of one, or in Chinese. Where the database's locale is C, trigrams
know no letters but ASCII's: the rest is found all the same, by reading the texts.
"""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

FINISHED = "('complete', 'interrupted', 'failed')"


def shown(row: str = "") -> str:
    """The condition under which a message is found."""
    return f"({row}type = 'text' AND {row}removed_at IS NULL AND {row}status IN {FINISHED})"


FORGET = """INSERT INTO chat_search(chat_search, rowid, text)
    SELECT 'delete', docid, OLD.text FROM chat_searchdoc WHERE message_id = OLD.id;"""
LEARN = f"""INSERT OR IGNORE INTO chat_searchdoc(message_id, session_id)
    SELECT NEW.id, NEW.session_id WHERE {shown("NEW.")};
    INSERT INTO chat_search(rowid, text) SELECT docid, NEW.text FROM chat_searchdoc WHERE message_id = NEW.id;"""
SQLITE = [
    """CREATE TABLE chat_searchdoc (docid integer PRIMARY KEY AUTOINCREMENT,
    message_id varchar(32) NOT NULL UNIQUE, session_id varchar(32) NOT NULL)""",
    "CREATE VIRTUAL TABLE chat_search USING fts5(text, content='', tokenize='trigram')",
    f"""INSERT INTO chat_searchdoc(message_id, session_id)
    SELECT id, session_id FROM chat_chatmessage WHERE {shown()} ORDER BY timestamp""",
    """INSERT INTO chat_search(rowid, text)
    SELECT d.docid, m.text FROM chat_searchdoc d JOIN chat_chatmessage m ON m.id = d.message_id""",
    f"""CREATE TRIGGER message_search_insert AFTER INSERT ON chat_chatmessage
    WHEN {shown("NEW.")} BEGIN {LEARN} END""",
    f"""CREATE TRIGGER message_search_update AFTER UPDATE OF text, type, status, removed_at ON chat_chatmessage
    WHEN {shown("OLD.")} <> {shown("NEW.")} OR ({shown("NEW.")} AND OLD.text <> NEW.text)
    BEGIN {FORGET}
    DELETE FROM chat_searchdoc WHERE message_id = OLD.id AND NOT {shown("NEW.")};
    {LEARN} END""",
    f"""CREATE TRIGGER message_search_delete AFTER DELETE ON chat_chatmessage
    WHEN {shown("OLD.")} BEGIN {FORGET} DELETE FROM chat_searchdoc WHERE message_id = OLD.id; END""",
]
DROP_SQLITE = [
    "DROP TRIGGER message_search_insert",
    "DROP TRIGGER message_search_update",
    "DROP TRIGGER message_search_delete",
    "DROP TABLE chat_search",
    "DROP TABLE chat_searchdoc",
]
POSTGRESQL = [
    # Not at all if an administrator has created it: managed servers check the right, or their list of allowed
    # extensions, before they look whether it exists.
    """DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm') THEN CREATE EXTENSION pg_trgm; END IF;
    END $$""",
    f"CREATE INDEX message_search ON chat_chatmessage USING gin (upper(text) gin_trgm_ops) WHERE {shown()}",
]
DROP_POSTGRESQL = ["DROP INDEX message_search"]


def create(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in DROP_SQLITE if schema_editor.connection.vendor == "sqlite" else DROP_POSTGRESQL:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_pages")]
    operations = [
        migrations.AddField("session", "archived_at", models.DateTimeField(blank=True, null=True)),
        migrations.RunPython(create, drop),
    ]
