"""The access matrix of the API: each operation needs a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.test.client import BOUNDARY, encode_multipart
from django.test.client import MULTIPART_CONTENT as MULTIPART
from django.urls import get_resolver
from pytest_django.fixtures import Settings

from chat.api.api import api
from chat.models import Attachment, ModelRequest, Suggestion
from chat.services.people import api_tokens, knowledge, memory
from chat.services.sessions import schedules
from tests.access.people import (
    ADMIN,
    ANONYMOUS,
    EDITOR,
    EVERYONE,
    GUEST,
    MESSAGE,
    OWNER,
    SHARED_AGENT,
    STRANGER,
    STRANGERS,
    VIEWER,
    Answers,
    Expected,
    People,
)
from tests.access.test_pages import routes
from tests.support.agreement import agree

pytestmark = pytest.mark.django_db
READ_TOKEN, WRITE_TOKEN = "the owner's token that may read", "the owner's token that may write"
VIEWERS_TOKEN = "the viewer's token that may write"
TOKENS = {READ_TOKEN: (OWNER, "read"), WRITE_TOKEN: (OWNER, "write"), VIEWERS_TOKEN: (VIEWER, "write")}
ACTORS = (*EVERYONE, *TOKENS)
JSON = "application/json"
ATTACHMENT = "a_" + "1" * 24
SUGGESTION = "e_" + "1" * 24
UPLOAD = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile("a.txt", b"Hi")})
S, M = "/sessions/{session_id}", "/sessions/{session_id}/messages/{message_id}"


ANSWERS = Answers(401)
signed_in, seeing, editing, owning = ANSWERS.signed_in, ANSWERS.seeing, ANSWERS.editing, ANSWERS.owning
choosing, members, managing = ANSWERS.choosing, ANSWERS.members, ANSWERS.managing
W = "/workspaces/{workspace_id}/members/{user_id}"
AGENT = "/workspaces/{workspace_id}/agents/{agent_name}"
G = "/workspaces/{workspace_id}/guests/{user_id}"
WI = "/workspaces/{workspace_id}/invitations"
WN = "/workspaces/{workspace_id}/notes"
HOOKED = ["turn.failed"]
RESPONSE = "r_" + "1" * 24
SCHEDULES = f"{S}/schedules"
SCHEDULE = f"{SCHEDULES}/{{schedule_id}}"


@dataclass(frozen=True)
class Row:
    """The answers to one request, which each actor makes on the same unchanged session."""

    method: str
    path: str
    people: Expected = field(repr=False, hash=False)
    body: Any = field(default=None, hash=False)
    query: str = ""

    def expected(self, actor: str) -> int | str:
        """Return the expected answer. A token has its owner's access, within its own limits."""
        if actor not in TOKENS:
            return self.people[actor]
        owner, scope = TOKENS[actor]
        return 403 if scope == "read" and self.method != "GET" else self.people[owner]


MATRIX = [
    Row("GET", "/me", signed_in(200)),
    Row("GET", "/me/usage", signed_in(200)),
    Row("GET", "/me/export", signed_in(200)),
    Row("GET", "/guests", signed_in(200)),
    # The user is not a guest, and only users who manage members get that answer; tests/services/test_guests.py covers
    # guests.
    Row("PATCH", G, {**signed_in(404), ADMIN: 409}, {"role": "member"}),
    Row("DELETE", G, {**signed_in(404), ADMIN: 409}),
    Row("PATCH", "/workspaces/{workspace_id}", managing(200), {"name": "Ops"}),
    Row("GET", "/workspaces/{workspace_id}/members", members(200)),
    Row("PATCH", W, {**managing(200), STRANGER: 403}, {"role": "admin"}),
    # Members may remove themselves.
    Row("DELETE", W, {**managing(204), STRANGER: 204}),
    Row("GET", "/workspaces/{workspace_id}/usage", managing(200)),
    Row("GET", WI, managing(200)),
    Row("POST", WI, managing(201), {"max_uses": 5}),
    Row("DELETE", WI, managing(204)),
    Row("DELETE", f"{WI}/{{invitation_id}}", managing(204)),
    Row("GET", "/workspaces/{workspace_id}/rules", members(200)),
    Row("PUT", "/workspaces/{workspace_id}/rules", managing(200), {"rule": "bash", "verdict": "deny"}),
    Row("DELETE", "/workspaces/{workspace_id}/rules/{rule_id}", managing(404)),
    Row("GET", "/workspaces/{workspace_id}/webhooks", managing(200)),
    # An address that is not allowed.
    Row("POST", "/workspaces/{workspace_id}/webhooks", managing(422), {"url": "http://10.0.0.1/", "events": HOOKED}),
    # There is no webhook, and users who may not manage webhooks get the same answer.
    Row("PATCH", "/webhooks/{webhook_id}", signed_in(404), {"is_enabled": True}),
    Row("DELETE", "/webhooks/{webhook_id}", signed_in(404)),
    Row("POST", "/webhooks/{webhook_id}/restore", signed_in(404)),
    Row("POST", "/webhooks/{webhook_id}/secret", signed_in(404)),
    Row("POST", "/webhooks/{webhook_id}/test", signed_in(404)),
    Row("GET", "/webhooks/{webhook_id}/deliveries", signed_in(404)),
    Row("POST", "/deliveries/{delivery_id}/again", signed_in(404)),
    Row("GET", "/workspaces/{workspace_id}/agents", members(200)),
    Row("POST", "/workspaces/{workspace_id}/agents", members(201), {"title": "Writer"}),
    Row("GET", AGENT, members(200)),
    Row("PATCH", AGENT, {**members(403), OWNER: 200, ADMIN: 200}, {"title": "Writer"}),
    Row("POST", f"{AGENT}/copy", members(201)),
    Row("POST", "/workspaces/{workspace_id}/enter", members(204)),
    Row("GET", "/me/notes", signed_in(200)),
    Row("POST", "/me/notes", signed_in(201), {"text": "Hi"}),
    # A note of the owner.
    Row("PATCH", "/me/notes/{note_id}", {**signed_in(404), OWNER: 200}, {"text": "Hey"}),
    Row("DELETE", "/me/notes/{note_id}", {**signed_in(404), OWNER: 204}),
    Row("POST", "/me/notes/{note_id}/restore", {**signed_in(404), OWNER: 200}),
    Row("GET", f"{WN}", members(200)),
    Row("GET", f"{WN}", managing(200), query="?removed=true"),
    Row("POST", f"{WN}", members(201), {"text": "Hi"}),
    # It is not a note of the workspace, which only users who manage those can find out.
    Row("PATCH", f"{WN}/{{note_id}}", managing(404), {"accepted": True}),
    Row("DELETE", f"{WN}/{{note_id}}", managing(404)),
    Row("POST", f"{WN}/{{note_id}}/restore", managing(404)),
    Row("GET", "/workspaces/{workspace_id}/knowledge", members(200)),
    Row("GET", "/workspaces/{workspace_id}/knowledge", members(200), query="?removed=true"),
    Row("POST", "/workspaces/{workspace_id}/knowledge", members(201), UPLOAD),
    Row("GET", "/workspaces/{workspace_id}/knowledge/search", members(200), query="?q=plan"),
    Row("GET", "/knowledge/{file_id}", members(200)),
    Row("GET", "/knowledge/{file_id}/content", members(200)),
    Row("GET", "/knowledge/{file_id}/passages", members(200)),
    # A file that the editor has added.
    Row("PATCH", "/knowledge/{file_id}", {**managing(200), EDITOR: 200}, {"name": "New.md"}),
    Row("DELETE", "/knowledge/{file_id}", {**managing(204), EDITOR: 204}),
    Row("POST", "/knowledge/{file_id}/restore", {**managing(200), EDITOR: 200}),
    Row("GET", "/models", signed_in(200)),
    Row("GET", "/agents", signed_in(200)),
    Row("GET", "/search", signed_in(200), query="?q=plan"),
    Row("GET", "/sessions", signed_in(200)),
    Row("POST", "/sessions", {**signed_in(201), GUEST: 403}, {}),
    Row("POST", "/sessions/import", signed_in(422)),
    Row("POST", "/imports", signed_in(422)),
    Row("GET", "/imports/{import_id}", signed_in(404)),
    Row("POST", "/imports/{import_id}/sessions", signed_in(404), {"conversations": [0]}),
    Row("DELETE", "/imports/{import_id}", signed_in(404)),
    Row("GET", f"{S}/export", seeing(200)),
    Row("GET", S, seeing(200)),
    Row("PATCH", S, editing(200), {"title": "New"}),
    Row("PATCH", S, editing(200), {"system_prompt": "New"}),
    Row("PATCH", S, {**choosing(422), VIEWER: 403}, {"agent": "none"}),
    Row("PATCH", S, {**choosing(422), VIEWER: 403}, {"provider": "none", "model": "none"}),
    Row("PATCH", S, owning(200), {"status": "archived"}),
    Row("PATCH", S, seeing(200), {"pinned": True}),
    Row("PATCH", S, seeing(200), {}),
    Row("DELETE", S, owning(204)),
    Row("POST", f"{S}/undelete", signed_in(404)),
    Row("POST", f"{S}/leave", {**seeing(204), OWNER: 422}),
    Row("POST", f"{S}/read", seeing(204), {"revision": 0}),
    Row("POST", f"{S}/cancel", editing(200)),
    Row("POST", f"{S}/compact", editing(422)),
    Row("POST", f"{S}/send_now", editing(200), {}),
    Row("GET", f"{S}/members", seeing(200)),
    Row("PUT", f"{S}/members/{{user_id}}", owning(204), {"role": "viewer"}),
    Row("DELETE", f"{S}/members/{{user_id}}", owning(204)),
    Row("PUT", f"{S}/workspace-access", owning(204), {"role": ""}),
    # A schedule of the owner. Other users of the session see it, except guests and viewers.
    Row("GET", SCHEDULES, seeing(200)),
    Row("POST", SCHEDULES, choosing(201), {"text": "Report", "cron": "0 9 * * *"}),
    Row("GET", SCHEDULE, seeing(200)),
    Row("PATCH", SCHEDULE, owning(200), {"is_on": False}),
    Row("POST", f"{SCHEDULE}/run", owning(200)),
    Row("POST", f"{SCHEDULE}/restore", owning(200)),
    Row("DELETE", SCHEDULE, owning(204)),
    Row("GET", f"{S}/invitations", owning(200)),
    Row("POST", f"{S}/invitations", owning(201), {"role": "editor"}),
    Row("DELETE", f"{S}/invitations", owning(204)),
    Row("DELETE", f"{S}/invitations/{{invitation_id}}", owning(204)),
    Row("POST", "/invitations/accept", signed_in(404), {"token": "unknown"}),
    Row("GET", f"{S}/removed", editing(200)),
    Row("GET", f"{S}/system_prompt/versions", seeing(200)),
    Row("GET", f"{M}/versions", seeing(200)),
    Row("POST", f"{M}/versions/{{version}}/restore", owning(200)),
    Row("GET", f"{S}/requests", seeing(200)),
    Row("GET", f"{S}/requests/{{response_id}}", seeing(200)),
    Row("GET", f"{S}/context/estimate", seeing(200)),
    Row("GET", f"{S}/events", seeing(200)),
    Row("POST", f"{S}/attachments", editing(201), UPLOAD),
    Row("GET", "/attachments/{attachment_id}", seeing(200)),
    # The file is sent, and another user uploaded it.
    Row("DELETE", "/attachments/{attachment_id}", editing(403)),
    Row("PATCH", S, choosing(200), {"mode": "chat", "config": {"tools": []}}),
    Row("GET", f"{S}/context", seeing(200)),
    Row("GET", f"{S}/workspace", seeing(200)),
    Row("GET", f"{S}/workspace/file", seeing(404), query="?path=none"),
    Row("GET", f"{S}/workspace/archive", seeing(200)),
    Row("GET", f"{S}/steps", seeing(200)),
    Row("GET", f"{S}/segments", seeing(200)),
    # The contents of the stream have their own tests.
    Row("GET", f"{S}/steps/stream", seeing(200)),
    Row("GET", f"{S}/usage", seeing(200)),
    Row("GET", f"{S}/messages", seeing(200)),
    Row("POST", f"{S}/messages", editing(201), {"text": "Hi"}),
    Row("GET", M, seeing(200)),
    Row("PATCH", M, owning(200), {"text": "Hi"}),
    Row("PATCH", M, editing(200), {"include_in_context": False}),
    Row("PATCH", M, seeing(200), {}),
    Row("DELETE", M, owning(204)),
    Row("GET", f"{M}/suggestions", seeing(200)),
    Row("POST", f"{M}/suggestions", {**editing(201), OWNER: 422}, {"text": "Hi"}),
    Row("POST", f"{S}/suggestions/{{suggestion_id}}/accept", owning(200), {}),
    Row("POST", f"{S}/suggestions/{{suggestion_id}}/dismiss", {**editing(204), GUEST: 403}),  # the editor's
    Row("POST", f"{M}/exclude_before", editing(200)),
    Row("POST", f"{M}/include_before", editing(200), {}),
    Row("POST", f"{M}/answer", editing(404), {"value": {"confirmed": True}}),
    Row("POST", f"{M}/restore", owning(200)),
    Row("POST", f"{M}/withdraw", editing(409)),
    Row("POST", f"{M}/retry", editing(200)),
    Row("POST", f"{M}/run_tools", editing(422)),
    Row("GET", f"{S}/agents", seeing(200)),
    Row("PUT", f"{S}/agents/{{name}}", {**editing(204), GUEST: 403}),
    Row("DELETE", f"{S}/agents/{{name}}", {**editing(422), GUEST: 403}),
    Row("POST", f"{S}/continue", editing(422)),
    Row("GET", f"{S}/attempts", editing(200)),
    Row("POST", f"{S}/attempts/{{attempt}}/restore", editing(404)),
    Row("POST", f"{M}/attempts/{{number}}", editing(404)),
    Row("POST", f"{M}/fork", {**seeing(201), GUEST: 403}, {}),
]
OF_SESSIONS = [row for row in MATRIX if "{session_id}" in row.path]
OF_FILES = [row for row in MATRIX if "{attachment_id}" in row.path]
STREAMS = ("/stream", "/events")
# The other ids in addresses, as in the rows of the test.
IDS: dict[str, Any] = {}
BESIDE = {"openapi.json", "docs", ""}  # the description is public, and the root is not an operation


def operations() -> Iterator[tuple[str, str]]:
    for method, path in ((m.upper(), p) for p, methods in api.get_openapi_schema()["paths"].items() for m in methods):
        yield method, path.removeprefix("/api")


def client_of(people: People, actor: str) -> Client:
    if actor in TOKENS:
        owner, scope = TOKENS[actor]
        _token, secret = api_tokens.create(user=people[owner], name="Script", scope=scope, days=0)
        return Client(headers={"Authorization": f"Bearer {secret}"})
    client = Client()
    if (user := people.users[actor]) is not None:
        client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def _sent_file(people: People, own_files: None) -> None:
    file = Attachment(pk=ATTACHMENT, session=people.session, message_id=MESSAGE, name="a.txt", kind="text", size=2)
    file.media_type = "text/plain"
    file.file.save("a.txt", ContentFile(b"Hi"))
    Suggestion.objects.create(pk=SUGGESTION, message_id=MESSAGE, user=people[EDITOR], text="Hey", revision=0)
    ModelRequest.objects.create(response_id=RESPONSE, session=people.session, revision=0, rows=[[MESSAGE, 0]])
    workspace = people.session.workspace_id
    added = knowledge.add(
        author=people[EDITOR], workspace_id=workspace, name="Plan.md", size=2, file=ContentFile(b"Hi")
    )
    IDS.update(
        file_id=added.pk,
        note_id=memory.keep_mine(user=people[OWNER], text="Hi").pk,
        workspace_id=people.session.workspace_id,
        user_id=people[STRANGER].pk,
        invitation_id=1,
        rule_id=1,
        webhook_id=1,
        delivery_id="d_" + "1" * 24,
        response_id=RESPONSE,
        schedule_id=schedules.add(
            author=people[OWNER], session_id=people.session.pk, text="Report", cron="0 9 * * *", zone="UTC"
        ).pk,
        version=0,
    )


def ask(
    client: Client, row: Row, session_id: str, message_id: str = MESSAGE, attachment_id: str = ATTACHMENT
) -> tuple[int, bytes]:
    """Send a request and undo its changes, without reading endless streams."""
    path = row.path.format(
        **{
            **IDS,
            "session_id": session_id,
            "message_id": message_id,
            "attachment_id": attachment_id,
            "suggestion_id": SUGGESTION,
            "attempt": "v_none",
            "number": 2,
            "name": "assistant",
            "agent_name": SHARED_AGENT,
            "import_id": "unknown",
        }
    )
    is_file = isinstance(row.body, bytes)
    body = row.body if is_file else b"" if row.body is None else json.dumps(row.body).encode()
    with transaction.atomic():
        answer = client.generic(row.method, f"/api{path}{row.query}", body, MULTIPART if is_file else JSON)
        transaction.set_rollback(True)
    assert "private" in answer["Cache-Control"]
    assert answer.status_code < 400 or answer["Content-Type"] == "application/problem+json"
    return answer.status_code, b"" if row.path.endswith(STREAMS) else answer.getvalue()


def test_every_operation_has_a_row() -> None:
    """LIVE-06: a new operation needs a row, so that its access is decided, and a description."""
    agree(
        [f"{row.method} {row.path}" for row in MATRIX],
        [f"{method} {path}" for method, path in operations()],
        missing="Add a Row for {} to MATRIX in this file: it says what each user gets.",
        extra="Remove the rows of {} from MATRIX in this file: the API has no such operation.",
    )
    addresses = {path.removeprefix("api/") for path in routes(get_resolver().url_patterns) if path.startswith("api/")}
    described = {path.lstrip("/").replace("{", "<").replace("}", ">") for _method, path in operations()}
    assert {path.replace("str:", "").replace("int:", "") for path in addresses} == described | BESIDE


@pytest.mark.parametrize("actor", ACTORS)
def test_each_role_gets_the_answers_of_the_access_matrix(people: People, actor: str) -> None:
    """Each role gets exactly the answers of the access matrix (LIVE-06)."""
    client = client_of(people, actor)
    got = {row: ask(client, row, people.session.pk)[0] for row in MATRIX}
    assert got == {row: row.expected(actor) for row in MATRIX}


@pytest.mark.parametrize("actor", [*STRANGERS, ANONYMOUS])
def test_strangers_do_not_learn_whether_a_session_exists(people: People, actor: str) -> None:
    """LIVE-06: the answers for sessions of others and for unknown ones are the same, byte for byte."""
    client, unknown = client_of(people, actor), "s_" + "0" * 24
    about = [*OF_SESSIONS, *OF_FILES]
    known = [ask(client, row, people.session.pk) for row in about]
    assert known == [ask(client, row, unknown, attachment_id="a_unknown") for row in about]


def test_api_description_is_public(people: People) -> None:
    """The description is public, because it contains only what the documentation has."""
    for address in ("/api/openapi.json", "/api/docs"):
        assert [client_of(people, actor).get(address).status_code for actor in ACTORS] == [200] * len(ACTORS)


def test_request_with_only_a_cookie_may_read_but_not_write(people: People) -> None:
    """LIVE-06: a request with only a cookie may read, but not write."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(people[OWNER])
    for row in MATRIX:
        status, body = ask(client, row, people.session.pk)
        assert status == (row.people[OWNER] if row.method == "GET" else 403)
        assert row.method == "GET" or json.loads(body)["code"] == "untrusted_form"


def test_pages_of_the_owner_may_write(people: People) -> None:
    """LIVE-06: a page's request may write with its CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(people[OWNER])
    client.get("/settings/")
    token = client.cookies["parley_csrf"].value
    address = f"/api/sessions/{people.session.pk}"
    answer = client.patch(address, {"title": "New"}, "application/json", headers={"X-CSRFToken": token})
    assert answer.status_code == 200


def test_who_owes_a_second_factor_asks_in_vain(people: People, settings: Settings) -> None:
    """LIVE-06: a cookie is refused until the second factor is set up. Tokens are separate credentials."""
    settings.REQUIRE_MFA = "all"
    client = client_of(people, OWNER)
    for row in MATRIX:
        status, body = ask(client, row, people.session.pk)
        assert (status, body and json.loads(body)["code"]) in ((403, "second_factor_required"), (403, b"")), row


@pytest.mark.both_databases
def test_odd_ids_are_not_found(people: People) -> None:
    """MSG-12: malformed ids are not found."""
    client = client_of(people, OWNER)
    for odd in ("%00", "s_" + "0" * 300, "😀", "%ED%A0%80", "..%2F", "'"):
        for row in OF_SESSIONS:
            assert ask(client, row, odd)[0] == 404
            if "{message_id}" in row.path:
                assert ask(client, row, people.session.pk, odd)[0] in (404, 422)
        for row in OF_FILES:
            assert ask(client, row, people.session.pk, attachment_id=odd)[0] == 404
