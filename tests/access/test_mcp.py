"""The access matrix of the MCP server: each tool needs a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from agents.messages import Json
from chat.errors import ServiceError
from chat.mcp.caller import Caller, caller_of
from chat.mcp.tools import TOOLS
from chat.models import ApiToken
from chat.origin import Interface, Origin
from chat.services.people import api_tokens
from tests.access.people import ANONYMOUS, EVERYONE, GUEST, MESSAGE, OWNER, Answers, Expected, People
from tests.support.agreement import agree

pytestmark = pytest.mark.django_db
ANSWERS = Answers(401)
CODES = {"no_such_session": 404, "no_such_workspace": 404, "forbidden": 403}


@dataclass(frozen=True)
class Row:
    """The answers to a call, by actor."""

    tool: str
    expected: Expected = field(repr=False, hash=False)
    arguments: Json = field(default_factory=dict, hash=False)
    of_session: bool = True


MATRIX = [
    Row("list_sessions", ANSWERS.signed_in(200), of_session=False),
    Row("search", ANSWERS.signed_in(200), {"query": "plan"}, of_session=False),
    Row("list_agents", ANSWERS.signed_in(200), of_session=False),
    Row("create_session", {**ANSWERS.signed_in(200), GUEST: 403}, {"wait": 0}, of_session=False),
    Row("read_session", ANSWERS.seeing(200)),
    Row("read_answer", ANSWERS.seeing(200), {"message": MESSAGE, "wait": 0}),
    Row("send_message", ANSWERS.editing(200), {"text": "Hello", "wait": 0}),
    Row("stop", ANSWERS.editing(200)),
]


@pytest.mark.parametrize("actor", [each for each in EVERYONE if each != ANONYMOUS])
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.tool)
def test_everyone_may_do_what_they_may(people: People, row: Row, actor: str) -> None:
    """LIVE-06: tools use the same access gate. tests/servers/test_mcp_server.py covers calls without a token."""
    token = ApiToken(user=people[actor], scope=ApiToken.Scope.WRITE)
    caller = Caller(token, Origin(Interface.API), "en", "http://localhost")
    tool = TOOLS[row.tool]
    named: dict[str, Any] = {"session": people.session.pk} if row.of_session else {}
    try:
        caller.run(lambda: tool.run(caller, tool.arguments.model_validate({**named, **row.arguments})))
        status = 200
    except ServiceError as error:
        status = CODES[error.code]
    assert status == row.expected[actor]


@pytest.mark.parametrize(
    ("public", "home"), [("https://chat.example.org", "https://chat.example.org"), ("", "http://testserver")]
)
def test_links_lead_to_the_public_address(people: People, settings: Settings, public: str, home: str) -> None:
    """Behind a proxy that passes on another host name, the request does not contain the address of users."""
    settings.PUBLIC_URL = public
    _token, secret = api_tokens.create(user=people[OWNER], name="program", scope="read", days=30)
    caller = caller_of(RequestFactory().post("/mcp"), secret)
    assert caller.page_of("s_1") == f"{home}/sessions/s_1/"


def test_each_tool_has_its_row() -> None:
    agree(
        [row.tool for row in MATRIX],
        TOOLS,
        missing="Add a Row for the tool {} to MATRIX in this file: it says what each user gets.",
        extra="Remove the rows of {} from MATRIX in this file: there is no such tool.",
    )
    assert all(TOOLS[name].writes for name in ("create_session", "send_message", "stop"))
