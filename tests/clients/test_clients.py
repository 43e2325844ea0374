"""Use clients generated from the API's schema against a server."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from openapi_spec_validator import validate

from agents.messages import Json
from chat.api.api import api
from tests.support.prepared import copy
from tests.support.server import ForkedServer, run_forked

HERE = Path(__file__).parent
NODE_MODULES = settings.BASE_DIR / "node_modules"
PATIENCE = 120
MAKE_TOKEN = """
from chat.models import User
from chat.services.people.api_tokens import create
print(create(user=User.objects.get(), name="Script", scope="write", days=0)[1])
"""
# The generator would format its code, which is not read here.
PLAIN = "post_hooks: []\n"


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("description") / "openapi.json"
    path.write_text(json.dumps(api.get_openapi_schema()))
    return path


@pytest.fixture(scope="module")
def server(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server, and a token of its only user."""
    server = ForkedServer(copy(prepared, tmp_path_factory.mktemp("clients") / "data"))
    server.start()
    try:
        yield server.address, run_forked("manage.py", "shell", "-v0", "-c", MAKE_TOKEN, data=server.data)
    finally:
        server.stop()


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program until it exits; return its output."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_description_is_valid(description: Path) -> None:
    """LIVE-03: valid OpenAPI 3.1; each schema is used, each tag described, each time a date-time."""
    schema = json.loads(description.read_text())
    validate(schema)
    text = description.read_text()
    schemas = schema["components"]["schemas"]
    assert [name for name in schemas if f'"#/components/schemas/{name}"' not in text] == []
    assert [name for name in schemas if name.endswith(("Out", "Query", "Snapshot"))] == []
    used = {tag for methods in schema["paths"].values() for operation in methods.values() for tag in operation["tags"]}
    assert used == {tag["name"] for tag in schema["tags"]}
    for name, each in schemas.items():
        for field, value in each.get("properties", {}).items():
            is_time = field == "at" or field.endswith(("timestamp", "_at"))
            if is_time and field != "compact_at":  # a percentage
                formats = {value.get("format"), *(option.get("format") for option in value.get("anyOf", ()))}
                assert "date-time" in formats, (name, field)


@pytest.mark.server
def test_python_client_works(
    description: Path, server: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-03: openapi-python-client, with typed answers: enums, times, files."""
    (tmp_path / "config.yml").write_text(PLAIN)
    command = (sys.executable, "-m", "openapi_python_client", "generate", "--path", str(description))
    options = ("--meta", "none", "--output-path", "parley_client", "--config", "config.yml", "--fail-on-warning")
    run(*command, *options, cwd=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert use_python_client(*server) == {
        "me": True,
        "outcome": "completed",
        "roles": ["user", "assistant"],
        "sent": True,
        "rounds": 2,
        "file": b"Words",
        "exported": True,
        "refused": "key_taken",
        "event": "From Python",
        "listed": ["From Python"],
        "deleted": 204,
    }


def use_python_client(address: str, token: str) -> Json:
    """Call the generated package as a script does."""

    def module(path: str) -> Any:
        return importlib.import_module(f"parley_client.{path}")

    models, types = module("models"), module("types")
    client = module("client").AuthenticatedClient(base_url=address, token=token)
    with client as parley:
        me = module("api.workspaces.get_me").sync(client=parley)
        new = models.NewSession(title="From Python")
        session = module("api.sessions.create_session").sync(client=parley, body=new)
        body = models.NewMessage(text="help", key="k1")
        sent = module("api.messages.send_message").sync(session.id, client=parley, body=body, wait=60)
        page = module("api.messages.list_messages").sync(session.id, client=parley, turn=sent.turn_id)
        texts = [each for each in page.messages if each.type_ == models.MessageType.TEXT]
        changes = models.SessionChanges(config=models.ConfigChanges(max_rounds=2))
        changed = module("api.sessions.change_session").sync(session.id, client=parley, body=changes)
        file = types.File(payload=BytesIO(b"Words"), file_name="a.txt", mime_type="text/plain")
        upload = models.UploadAttachmentBody(file=file)
        uploaded = module("api.files.upload_attachment").sync(session.id, client=parley, body=upload)
        whole = module("api.files.get_attachment").sync(uploaded.id, client=parley)
        markdown = models.ExportSessionFormat.MARKDOWN
        exported = module("api.transfer.export_session").sync(session.id, client=parley, format_=markdown)
        other = models.NewMessage(text="other", key="k1")
        refused = module("api.messages.send_message").sync(session.id, client=parley, body=other)
        with parley.get_httpx_client().stream("GET", f"/api/sessions/{session.id}/events") as stream:
            data = next(line for line in stream.iter_lines() if line.startswith("data: "))
        event = models.ChangesEvent.from_dict(json.loads(data.removeprefix("data: ")))
        listed = module("api.sessions.list_sessions").sync(client=parley, q="python")
        deleted = module("api.sessions.delete_session").sync_detailed(session.id, client=parley)
    return {
        "me": me.scope == models.MeScope.WRITE,
        "outcome": sent.outcome.value,
        "roles": [each.role.value for each in texts],
        "sent": isinstance(texts[0].timestamp, datetime),
        "rounds": changed.config.max_rounds,
        "file": whole.payload.read(),
        "exported": "From Python" in exported,
        "refused": refused.code,
        "event": event.session.title,
        "listed": [each.title for each in listed.sessions],
        "deleted": deleted.status_code,
    }


@pytest.mark.server
def test_typescript_client_works(description: Path, server: tuple[str, str], tmp_path: Path) -> None:
    """LIVE-03: openapi-typescript, compiled in strict mode and run by node."""
    assert NODE_MODULES.is_dir(), "scripts/node-packages installs what this test drives"
    for path in (HERE / "client.ts", HERE / "tsconfig.json", settings.BASE_DIR / "package.json"):
        shutil.copy(path, tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    tools = NODE_MODULES / ".bin"
    run(tools / "openapi-typescript", description, "--output", "schema.d.ts", cwd=tmp_path)
    node_types = "declare const process: { argv: string[] };\n"
    (tmp_path / "node.d.ts").write_text(node_types)
    run(tools / "tsc", "--project", ".", cwd=tmp_path)
    printed = run("node", "client.js", *server, cwd=tmp_path)
    assert json.loads(printed) == {
        "me": "admin",
        "outcome": "completed",
        "answered": True,
        "mode": "chat",
        "rounds": 2,
        "refused": "key_taken",
        "exported": True,
        "form": "openai",
        "event": "From TypeScript",
        "deleted": 204,
    }
