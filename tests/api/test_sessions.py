"""Reading and changing sessions over the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from agents.config import Config
from agents.config_file import DEMO_TOOLS
from agents.registry import Registry
from agents.toolbox import DEFAULT_TOOLS
from chat import agents_setup
from chat.models import ChatMessage, Session, SessionRevision, SessionRole, User
from chat.services.messages.editing import edit
from chat.services.sessions.actions import delete
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import Asker, code, token_of
from tests.support.rows import say
from tests.support.testing_node import CONFIG, let_in

pytestmark = pytest.mark.django_db
SESSIONS = "/api/sessions"


def path(session: Session, rest: str = "") -> str:
    return f"{SESSIONS}/{session.pk}{rest}"


def everything(asker: Asker, limit: int) -> list[str]:
    """Return the titles of all pages."""
    titles: list[str] = []
    cursor = ""
    while True:
        page = asker.get(f"{SESSIONS}?limit={limit}{cursor}").json()
        titles += [row["title"] for row in page["sessions"]]
        if page["next"] is None:
            return titles
        cursor = f"&cursor={page['next']}"


def test_begun_session_has_what_was_asked_for(asker: Asker, ana: User) -> None:
    """MSG-01: a new session has the requested values, and its first message is sent."""
    answer = asker.post(SESSIONS, {"title": " New  plan", "text": "Hi", "system_prompt": "Be brief.", "agent": ""})
    shown = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, f"{SESSIONS}/{shown['id']}")
    assert (shown["title"], shown["system_prompt"], shown["role"], shown["agent_status"]) == (
        "New plan",
        "Be brief.",
        "owner",
        "thinking",
    )
    assert [row.text for row in ChatMessage.objects.filter(session=shown["id"], type="text")] == ["Hi"]
    assert shown == asker.get(answer["Location"]).json()


@pytest.mark.both_databases
def test_key_makes_one_session(asker: Asker, bo: User) -> None:
    """MSG-02: a repeated request returns the session of the first one.

    The same key of another user makes another session.
    """
    body = {"text": "Hi", "key": "k1"}
    first, again = asker.post(SESSIONS, body), asker.post(SESSIONS, body)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
    assert ChatMessage.objects.filter(type="text").count() == 1
    assert Asker(token_of(bo)).post(SESSIONS, body).status_code == 201
    asker.delete(f"{SESSIONS}/{first.json()['id']}")
    assert code(asker.post(SESSIONS, body)) == (409, "key_taken")


@pytest.mark.both_databases
def test_refused_beginning_leaves_nothing(asker: Asker) -> None:
    """MSG-12: a refused request makes no session, and its key can be used again."""
    for wrong in ({"agent": "unknown"}, {"provider": "x", "model": "y"}, {"text": "a\0b"}, {"title": "a\0b"}):
        assert code(asker.post(SESSIONS, {"key": "k1", **wrong}))[0] == 422
    assert Session.objects.count() == 0
    assert asker.post(SESSIONS, {"key": "k1"}).status_code == 201


def test_model_is_found_without_its_provider(asker: Asker) -> None:
    """RUN-16: a model without a provider's name gets the provider that offers it."""
    agents_setup.install(Registry(Config.model_validate(CONFIG), {}))
    made = asker.post(SESSIONS, {"model": "two"}).json()
    assert (made["provider"], made["model"]) == ("scripted", "two")
    refused = asker.post(SESSIONS, {"model": "three"})
    assert code(refused) == (422, "no_such_model")
    assert refused.json()["detail"] == "The model “three” isn’t configured here."


@pytest.mark.both_databases
def test_list_goes_on_where_it_stopped(asker: Asker, ana: User, bo: User) -> None:
    """LIVE-06: pages contain each accessible session once, in the order of the last activity."""
    for number in range(5):
        create_session(owner=ana, title=f"{number}")
    create_session(owner=bo, title="Bo's")
    let_in(create_session(owner=bo, title="Shared"), ana, SessionRole.VIEWER)
    expected = ["Shared", "4", "3", "2", "1", "0"]
    assert [everything(asker, limit) for limit in (1, 2, 6, 100)] == [expected] * 4
    row = asker.get(f"{SESSIONS}?limit=1").json()["sessions"][0]
    states = ("archived", "pinned", "working", "waiting")
    assert (row["owner"], [row[name] for name in states]) == ("Bo", [False] * 4)


@pytest.mark.both_databases
def test_changes_are_made_together_or_not_at_all(asker: Asker, session: Session) -> None:
    """Several changes in one request are applied together or not at all (RUN-16, ADM-02)."""
    body: dict[str, Any] = {"title": "New", "system_prompt": "Be brief.", "pinned": True, "status": "archived"}
    shown = asker.patch(path(session), body).json()
    assert (shown["title"], shown["system_prompt"], shown["status"]) == ("New", "Be brief.", "archived")
    assert asker.get(f"{SESSIONS}?archived=true").json()["sessions"][0]["pinned"] is True
    assert code(asker.patch(path(session), {"title": "Newer", "agent": "unknown"})) == (422, "no_such_agent")
    assert code(asker.patch(path(session), {"title": "Newer", "model": "one"})) == (422, "malformed")
    assert code(asker.patch(path(session), {"titel": "Newer"})) == (422, "malformed")
    session.refresh_from_db()
    assert session.title == "New"


def test_reasoning_is_chosen_as_the_model_offers_it(asker: Asker, session: Session) -> None:
    """RUN-16: GET /models lists the options. An unsupported one is refused together with the rest of its request."""
    models = {"one": {"reasoning_efforts": ["low", "high"]}, "two": {}}
    config = {"providers": {"scripted": {"type": "demo", "models": models}}, "agents": CONFIG["agents"]}
    agents_setup.install(Registry(Config.model_validate(config), {}))
    known = {each["model"]: each for each in asker.get("/api/models").json()["models"]}
    assert (known["one"]["reasoning_efforts"], known["one"]["takes_thinking_budget"]) == (["low", "high"], False)
    assert known["two"]["reasoning_efforts"] == []
    wanted = {"provider": "scripted", "model": "one", "config": {"reasoning_effort": "high"}}
    shown = asker.patch(path(session), wanted).json()
    assert (shown["reasoning_effort"], shown["thinking_budget"]) == ("high", None)
    assert code(asker.patch(path(session), {"title": "New", "config": {"reasoning_effort": "max"}})) == (422, "invalid")
    assert code(asker.patch(path(session), {"title": "New", "config": {"thinking_budget": 4000}})) == (422, "invalid")
    assert asker.get(path(session)).json()["title"] != "New"
    shown = asker.post(SESSIONS, {"config": {"reasoning_effort": "low"}}).json()
    assert shown["reasoning_effort"] == "low"
    shown = asker.patch(path(session), {"provider": "scripted", "model": "two"}).json()
    assert (shown["reasoning_effort"], shown["config"]["reasoning_effort"]) == ("", "high")


def test_change_with_an_outdated_tag_or_prompt_is_refused(asker: Asker, session: Session) -> None:
    """LIVE-02, MSG-11: a change is refused if the session's tag or the prompt that the client has seen is outdated."""
    tag = asker.get(path(session))["ETag"]
    assert asker.patch(path(session), {"title": "A"}, if_match=tag).status_code == 200
    stale = asker.patch(path(session), {"title": "B"}, if_match=tag)
    assert (code(stale), stale.json()["revision"]) == ((412, "stale"), 1)
    assert code(asker.patch(path(session), {"title": "B"}, if_match='"x"')) == (412, "stale")
    asker.patch(path(session), {"system_prompt": "One"})
    stale = asker.patch(path(session), {"system_prompt": "Two", "seen_system_prompt": ""})
    assert (code(stale), stale.json()["current"]) == ((409, "stale"), "One")
    assert asker.patch(path(session), {"title": "B"}, if_match="*").json()["title"] == "B"
    now = asker.get(path(session))["ETag"]
    listed = f'"{10**17}.0123456789abcdef", W/{now}, "x"'
    assert asker.patch(path(session), {"title": "C"}, if_match=listed).json()["title"] == "C"
    assert code(asker.patch(path(session), {"title": "D"}, if_match=listed)) == (412, "stale")


def test_what_a_client_has_is_not_sent_again(asker: Asker, session: Session, ana: User) -> None:
    """LIVE-02: the answer is 304 until the session or the state of its agent changes."""
    for address in (path(session), path(session, "/messages"), SESSIONS, "/api/agents", "/api/me"):
        first = asker.get(address)
        for known in (first["ETag"], f'"x", W/{first["ETag"]}', "*"):
            again = asker.get(address, if_none_match=known)
            assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    tag = asker.get(path(session))["ETag"]
    say(session, ana, "Hm", status="streaming")
    assert asker.get(path(session), if_none_match=tag).json()["agent_status"] == "thinking"


def test_deleted_session_is_gone_until_it_is_brought_back(asker: Asker, reader: Asker, session: Session) -> None:
    """LIVE-06: a deleted session is not found until its owner restores it."""
    assert code(reader.delete(path(session))) == (403, "forbidden")
    assert asker.delete(path(session)).status_code == 204
    assert [code(each.get(path(session))) for each in (asker, reader)] == [(404, "no_such_session")] * 2
    assert code(reader.post(path(session, "/undelete"))) == (404, "no_such_session")
    assert asker.post(path(session, "/undelete")).json()["status"] == "active"
    assert reader.get(path(session)).json()["role"] == "viewer"
    assert reader.post(path(session, "/leave")).status_code == 204
    assert code(reader.get(path(session))) == (404, "no_such_session")
    assert code(asker.post(path(session, "/leave"))) == (422, "is_owner")


def test_what_one_has_seen_is_not_unread(asker: Asker, session: Session, bo: User) -> None:
    """Messages that the user has seen are not unread (LIVE-02)."""
    say(session, bo, "News")
    assert asker.get(SESSIONS).json()["sessions"][0]["unread"] is True
    assert asker.post(path(session, "/read"), {"revision": 1}).status_code == 204
    assert asker.get(SESSIONS).json()["sessions"][0]["unread"] is False


def test_configuration_is_read_and_set(asker: Asker, reader: Asker, session: Session) -> None:
    """ADM-01, MSG-09: tools, rounds and mode are changed from the next response on and recorded.

    Values that are not offered are refused.
    """
    before = asker.get(path(session)).json()
    assert (before["mode"], before["config"]["tools"], before["config"]["max_rounds"]) == (
        "agent",
        [*(tool.name for tool in DEFAULT_TOOLS), *DEMO_TOOLS, "example__*"],
        25,
    )
    changes: dict[str, Any] = {"mode": "run", "config": {"tools": ["calculator"], "max_rounds": 3}}
    changed = asker.patch(path(session), changes).json()
    assert (changed["mode"], changed["config"]) == ("run", {**before["config"], **changes["config"]})
    assert asker.patch(path(session), {"config": {"tools": []}}).json()["config"]["max_rounds"] == 3
    refused: list[dict[str, Any]] = [{"tools": ["shell"]}, {"max_rounds": 999}, {"max_rounds": 0}, {"prompts": []}]
    for wrong in refused:
        assert code(asker.patch(path(session), {"config": wrong}))[0] == 422
    assert code(asker.patch(path(session), {"mode": "x"})) == (422, "malformed")
    assert code(reader.patch(path(session), changes)) == (403, "forbidden")
    kinds = SessionRevision.objects.filter(session=session).order_by("pk").values_list("kind", "before")
    assert [kind for kind, _before in kinds] == ["agent", "agent"]
    assert kinds[0][1].keys() == {"config", "mode"}
    made = asker.post(SESSIONS, {"mode": "chat", "config": {"max_rounds": 2}}).json()
    assert (made["mode"], made["config"]["max_rounds"]) == ("chat", 2)
    assert code(asker.post(SESSIONS, {"config": {"tools": ["shell"]}}))[0] == 422


@pytest.mark.both_databases
def test_list_is_filtered(asker: Asker, ana: User, bo: User) -> None:
    """LIVE-06: the list is filtered by words in titles and messages, agent and time.

    Deleted sessions can be listed and restored.
    """
    plan = say(create_session(owner=ana, title="Plan"), ana, "The Zanzibar trip").session
    shared = create_session(owner=bo, title="Zanzibar")
    let_in(shared, ana, SessionRole.VIEWER)
    say(create_session(owner=bo, title="Hidden"), bo, "Zanzibar")
    Session.objects.filter(pk=shared.pk).update(agent="helper")
    rows = asker.get(f"{SESSIONS}?q=zanzibar").json()["sessions"]
    assert [(row["title"], row["owner"], row["role"], row["agent"]) for row in rows] == [
        ("Zanzibar", "Bo", "viewer", "helper"),
        ("Plan", "Ana", "owner", plan.agent),
    ]
    assert [row["title"] for row in asker.get(f"{SESSIONS}?agent=helper").json()["sessions"]] == ["Zanzibar"]
    Session.objects.filter(pk=plan.pk).update(updated_at=datetime(2020, 1, 1, tzinfo=UTC))
    recent = asker.get(f"{SESSIONS}?updated_since=2021-01-01T00:00:00%2B02:00").json()["sessions"]
    assert [row["title"] for row in recent] == ["Zanzibar"]
    assert asker.delete(path(plan)).status_code == 204
    deleted = asker.get(f"{SESSIONS}?deleted=true").json()["sessions"]
    assert [(row["id"], row["deleted"]) for row in deleted] == [(plan.pk, True)]
    assert Asker(token_of(bo)).get(f"{SESSIONS}?deleted=true").json()["sessions"] == []
    assert asker.post(path(plan, "/undelete")).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "archved=true",
        "archived=1&x=",
        "deleted=true&archived=true",
        "updated_since=2021-01-01",
        "updated_since=9999-12-31T23:59:59-23:59",
        "agent=%00",
        "q=" + "x" * 1001,
    ],
)
@pytest.mark.both_databases
def test_unknown_and_odd_filters_are_refused(asker: Asker, session: Session, query: str) -> None:
    """MSG-12: unknown and invalid filters are refused, because ignoring them would give a wrong answer."""
    assert code(asker.get(f"{SESSIONS}?{query}")) == (422, "malformed")
    assert code(asker.get(f"/api/me?{query}")) == (422, "malformed")


@pytest.mark.both_databases
def test_search_finds_what_one_may_see(asker: Asker, session: Session, ana: User, bo: User) -> None:
    """Search finds only sessions that the user can see (LIVE-06)."""
    say(session, ana, "The <b>Zanzibar</b> plan")
    say(create_session(owner=bo, title="Zanzibar"), bo, "Zanzibar")
    found = asker.get("/api/search?q=zanzibar").json()
    assert found["sessions"] == []
    assert [hit["snippet"] for hit in found["messages"]] == ["The &lt;b&gt;<mark>Zanzibar</mark>&lt;/b&gt; plan"]


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.both_databases
def test_lists_cost_the_same_however_long(
    asker: Asker, ana: User, count: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """LIVE-01: the number of queries is constant, including two for the token."""
    asker.get("/api/me")
    for number in range(count):
        row = say(create_session(owner=ana, title=f"{number}"), ana, "Zanzibar")
        edit(session=row.session, author=ana, message_id=row.pk, text="Zanzibar!")
    for address, queries in ((SESSIONS, 2), ("/api/search?q=zanzibar", 4), ("/api/agents", 3), ("/api/me", 2)):
        with django_assert_max_num_queries(queries):
            assert asker.get(address).status_code == 200


def test_deleted_is_deleted_for_lists(asker: Asker, session: Session, ana: User) -> None:
    """Deleted sessions are in no list (LIVE-06)."""
    delete(user=ana, session_id=session.pk)
    assert asker.get(SESSIONS).json() == {"sessions": [], "next": None}


def test_body_may_be_left_out(asker: Asker) -> None:
    """MSG-12: a body can be omitted if all its fields are optional."""
    assert asker.post(SESSIONS).status_code == 201


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "cursor=x", "cursor=1.%00", "cursor=.", "limit=9" * 999]
)
def test_pages_have_bounds(asker: Asker, query: str) -> None:
    """Page sizes outside of their limits and malformed cursors are refused (MSG-12)."""
    assert asker.get(f"{SESSIONS}?{query}").status_code == 422
