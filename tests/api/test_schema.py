"""Valid and invalid requests generated from the API's description, sent by two users who must not see each other's
data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from django.core.files.base import ContentFile
from django.db import transaction
from django.test.client import ClientHandler
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from chat.api.api import api
from chat.models import (
    Attachment,
    Invitation,
    ModelRequest,
    Session,
    SessionRole,
    Suggestion,
    User,
    Workspace,
)
from chat.services import import_uploads
from chat.services.people import knowledge, members_agents, memory, sharing
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions import schedules
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import token_of
from tests.support.effort import cases
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill
from tests.support.rows import say
from tests.support.testing_node import let_in, person
from tests.transfer.samples import chatgpt

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]
# For a long search, set more of them: PARLEY_REQUESTS=200 pytest tests/api/test_schema.py
REQUESTS = int(os.environ.get("PARLEY_REQUESTS", cases(4)))
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    ignored_auth,
]
# Invalid requests have an invalid body or query; unknown parts are ignored.
RIGHT_HEADERS = {"Authorization": "Bearer", "If-Match": "*", "If-None-Match": ""}
# Endless streams, which have their own tests.
STREAMS = ("/api/sessions/{session_id}/steps/stream", "/api/sessions/{session_id}/events")


def served(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Parley as a WSGI application on the test's own connection to the database, which a server would close.

    Answers are not compressed, so that they can be searched.
    """
    environ.pop("HTTP_ACCEPT_ENCODING", None)
    answer: Any = ClientHandler(enforce_csrf_checks=True)(environ)
    start_response(f"{answer.status_code} {answer.reason_phrase}", list(answer.items()))
    return [answer.getvalue()]


SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(api.get_openapi_schema())))
SCHEMA.app = served
FOUND: list[Any] = [each.ok() for each in SCHEMA.get_all_operations() if isinstance(each, Ok)]
OPERATIONS = {each.label: each for each in FOUND if each.path not in STREAMS}


def planted(owner: User, word: str) -> dict[str, Any]:
    """Create a session that contains a word in every text; return the ids in it."""
    session = create_session(owner=owner, title=f"Title {word}", system_prompt=f"Prompt {word}")
    said = {**HI, "text": f"Said {word}", "sender": word}
    tool = {**TOOL, "result": f"Result {word}", "arguments": {"word": word}}
    rows = fill(session, START, said, tool, {**ANSWER, "text": f"Answer {word}"}, DONE)
    # The file itself is lost, which is a reported problem.
    file = Attachment.objects.create(
        session=session,
        user=owner,
        message=rows[1],
        name=f"{word}.txt",
        kind="text",
        media_type="text/plain",
        size=1,
        file=f"attachments/{session.pk}/lost",
    )
    say(session, owner, f"Queued {word}", status="queued")
    request = ModelRequest.objects.create(
        response_id=f"r_{session.pk[2:]}", session=session, revision=5, rows=[[rows[1].pk, 2]]
    )
    sharing.invite(session=session, author=owner, role=SessionRole.VIEWER)
    suggestion = Suggestion.objects.create(message=rows[1], user=owner, text=f"Suggested {word}", revision=0)
    its = AgentSettings(title=f"Agent {word}", system_prompt=f"Instructions {word}")
    agent = members_agents.make(author=owner, workspace_id=session.workspace_id, given=its)
    return {
        "session_id": session.pk,
        "message_id": rows[1].pk,
        "attachment_id": file.pk,
        "response_id": request.pk,
        "version": 0,
        "suggestion_id": suggestion.pk,
        # A new session would leave a running turn, for which most other operations wait.
        "attempt": "v_none",
        "number": 2,
        "name": "assistant",
        "agent_name": agent.name,
        "import_id": import_uploads.keep(owner=owner, file=ContentFile(json.dumps([chatgpt(word)]).encode())).id,
        "invitation_id": Invitation.objects.get(session=session).pk,
        "file_id": knowledge.add(
            author=owner, workspace_id=session.workspace_id, name=f"Plan {session.pk}", size=2, file=ContentFile(b"Hi")
        ).pk,
        "note_id": memory.keep_mine(user=owner, text=f"Note {word}").pk,
        "schedule_id": schedules.add(
            author=owner, session_id=session.pk, text=f"Scheduled {word}", cron="0 9 * * *", zone="UTC"
        ).pk,
        "user_id": owner.pk,
        "workspace_id": session.workspace_id,
        # Members may neither remove rules nor see webhooks, so any number will do.
        "rule_id": 1,
        "webhook_id": 1,
        "delivery_id": "d_" + "1" * 24,
    }


@pytest.fixture
def places(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Two users of one workspace, each with their own session. Data in both sessions is not secret."""
    people = {name: person(name, workspace) for name in ("Ana", "Bo")}
    found = {name: planted(user, f"secret-of-{name}") for name, user in people.items()}
    found["both"] = planted(people["Ana"], "plan")
    let_in(Session.objects.get(pk=found["both"]["session_id"]), people["Bo"], SessionRole.EDITOR)
    return found


def requests_of(operation: Any, places: dict[str, dict[str, str]]) -> Iterator[st.SearchStrategy[Any]]:
    """Return valid and invalid requests about each place, and valid ones about unknown objects."""
    names = [each.name for each in operation.path_parameters]
    known = st.sampled_from([{name: place[name] for name in names} for place in places.values()])
    yield known.flatmap(lambda ids: operation.as_strategy(GenerationMode.POSITIVE, path_parameters=ids))
    if operation.body or operation.query:
        yield known.flatmap(
            lambda ids: operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=ids, headers=RIGHT_HEADERS)
        )
    if names:
        yield operation.as_strategy(GenerationMode.POSITIVE)


@pytest.mark.parametrize("label", OPERATIONS)
@pytest.mark.parametrize(("name", "other"), [("Ana", "Bo"), ("Bo", "Ana")])
def test_requests_of_the_description(places: dict[str, dict[str, str]], name: str, other: str, label: str) -> None:
    """MSG-12, LIVE-06: answers match the description, without a server error and without text of another user."""
    headers = {"Authorization": f"Bearer {token_of(User.objects.get(username=name.lower()))}"}
    secret = f"secret-of-{other}".encode()

    for requests in requests_of(OPERATIONS[label], places):

        @settings(
            max_examples=REQUESTS,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=requests)
        def ask(case: Any) -> None:
            case.query.pop("wait", None)  # no agent runs here
            with transaction.atomic():
                answer = case.call(headers=headers)
                rejecting = [negative_data_rejection] if case.operation.body else []
                case.validate_response(answer, checks=[*CHECKS, *rejecting], headers=headers)
                transaction.set_rollback(True)
            assert secret not in answer.content + repr(answer.headers).encode()

        ask()


@pytest.mark.parametrize("name", ["Ana", "Bo"])
def test_own_words_would_be_found(places: dict[str, dict[str, str]], name: str) -> None:
    """LIVE-06: the word is in the answers that its owner gets, so a leak would be found."""
    headers = {"Authorization": f"Bearer {token_of(User.objects.get(username=name.lower()))}"}
    assert len(FOUND) == len(list(SCHEMA.get_all_operations()))
    for label in ("GET /api/sessions", "GET /api/sessions/{session_id}", "GET /api/sessions/{session_id}/messages"):
        operation = OPERATIONS[label]
        wanted = {each.name: places[name][each.name] for each in operation.path_parameters}
        answer = operation.Case(path_parameters=wanted).call(headers=headers)
        assert f"secret-of-{name}".encode() in answer.content
