"""Rate limits: how requests are counted, how limits change, and how sockets, the API and pages refuse."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from chat.api.commands import make_command
from chat.dispatch import execute
from chat.limits import rates as limits
from chat.limits import whole_sessions
from chat.limits.counters import Counters
from chat.limits.rates import DAY, RATES, RateLimited, duration_words, rates
from chat.limits.whole_sessions import reading_whole
from chat.models import ChatMessage, User
from chat.origin import Interface, Origin, using_origin
from chat.services.people.login_throttle import FREE_GUESSES, MAX_DELAY, delay_after
from chat.services.sessions import lifecycle
from tests.api.asking import Asker, code, token_of
from tests.support.redis import Redis
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode


def admitted(counters: Counters, name: str = "forks", amount: int = 3) -> bool:
    item = limits._item(limits.Rate(amount, 60, ""))
    return counters.window(lambda limiter: limiter.hit(item, name))


# --- counting ------------------------------------------------------------------------------------------------------


def test_requests_beyond_the_limit_are_refused_with_the_time_to_wait(settings: Settings) -> None:
    """Each user has their own limit, and refused requests do not count."""
    settings.LIMITS = "forks=2/minute"
    windows = [limits.count("forks", 1) for _ in range(3)]
    assert [(each.is_admitted, each.remaining) for each in windows] == [(True, 1), (True, 0), (False, 0)]
    assert limits.count("forks", 2).is_admitted
    with pytest.raises(RateLimited) as refused:
        windows[2].require()
    assert 0 < refused.value.details["retry_after"] <= 60


@pytest.mark.parametrize(("seconds", "wait"), [(0.0, 1), (1.0, 1), (1.01, 2), (59.5, 60)])
def test_time_to_wait_is_never_too_short(seconds: float, wait: int) -> None:
    """A client that waits for the reported number of seconds is not refused again."""
    assert RateLimited(seconds).details["retry_after"] == wait


def test_cost_is_counted_and_one_large_request_is_taken_alone(settings: Settings) -> None:
    settings.LIMITS = "upload_megabytes=10/minute"
    assert limits.count("upload_megabytes", 1, cost=30).is_admitted
    assert not limits.count("upload_megabytes", 1, cost=1).is_admitted


def test_limits_are_changed_and_removed_by_a_setting(settings: Settings) -> None:
    settings.LIMITS = "sends=5/10 minutes, forks = 0"
    assert (rates()["sends"].amount, rates()["sends"].seconds) == (5, 600)
    assert rates()["uploads"] == RATES["uploads"]
    assert all(limits.count("forks", 1).is_admitted for _ in range(RATES["forks"].amount + 1))


@pytest.mark.parametrize(
    "written",
    [
        "nonsense=1/minute",
        "sends",
        "sends=often",
        "sends=-1/minute",
        "sends=60/minute;1000/hour",
        "sends=1/minute, sends=2/minute",
    ],
)
def test_invalid_limits_are_reported_at_startup(settings: Settings, written: str) -> None:
    settings.LIMITS = written
    with pytest.raises(ValueError):
        rates()


def test_commands_and_agents_are_not_limited(settings: Settings) -> None:
    settings.LIMITS = "sends=1/minute"
    for _ in range(3):
        limits.spend("sends", 1)
    with using_origin(Origin(Interface.API)):
        limits.spend("sends", 1)
        with pytest.raises(RateLimited):
            limits.spend("sends", 1)


@given(st.integers(0, 200))
def test_delay_doubles_up_to_a_bound(guesses: int) -> None:
    """The first ten attempts have no delay, and the delays allow few more in a day."""
    delay = delay_after(guesses)
    assert (delay == 0) == (guesses < FREE_GUESSES)
    assert delay <= delay_after(guesses + 1) <= max(2 * delay, 2)
    assert delay <= MAX_DELAY


def test_a_day_has_few_guesses_of_one_name() -> None:
    guesses, seconds = 0, 0
    while seconds < DAY:
        guesses += 1
        seconds += delay_after(guesses)
    assert guesses < 120


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 second"), (119, "119 seconds"), (121, "3 minutes"), (7_000, "117 minutes"), (7_201, "3 hours")],
)
def test_time_to_wait_is_described(seconds: int, words: str) -> None:
    assert duration_words(seconds) == words


# --- several processes ---------------------------------------------------------------------------------------------


@pytest.mark.server
async def test_processes_count_together_and_each_alone_while_redis_is_away(
    redis: Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During an outage of Redis each process applies the limit alone, and the log reports the outage once."""
    monkeypatch.setattr("chat.limits.counters.PAUSE_SECONDS", 0.0)
    first, second = Counters(redis.url, "test"), Counters(redis.url, "test")
    assert [admitted(each) for each in (first, second, first, second)] == [True, True, True, False]
    redis.kill()
    with caplog.at_level(logging.INFO, logger="chat"):
        assert [admitted(first) for _ in range(4)] == [True, True, True, False]
        assert [admitted(second) for _ in range(4)] == [True, True, True, False]
        await redis.start()
        assert admitted(first)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"]


def test_frozen_redis_is_not_waited_for_by_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """If Redis does not answer, only the first request waits for it. No server listens on the port here."""
    counted = Counters("redis://127.0.0.1:1/0", "test")
    assert admitted(counted)
    monkeypatch.setattr(counted, "_redis", object())  # an access would raise an error
    assert admitted(counted)


# --- sockets, pages and the API ------------------------------------------------------------------------------------

Act = Callable[[Asker, Client, str], Any]


def _upload(asker: Asker, page: Client, session_id: str) -> Any:
    file = SimpleUploadedFile("a.txt", b"words")
    return page.post(reverse("session-attachments", args=[session_id]), {"file": file})


def _import(asker: Asker, page: Client, session_id: str) -> Any:
    return page.post(reverse("import-file"), {"file": SimpleUploadedFile("a.json", b"{}")})


API: list[tuple[str, Act]] = [
    ("requests", lambda asker, page, pk: asker.get("/api/me")),
    ("sends", lambda asker, page, pk: asker.post(f"/api/sessions/{pk}/messages", {"text": "Hi"})),
    ("sessions", lambda asker, page, pk: asker.post("/api/sessions", {})),
    ("changes", lambda asker, page, pk: asker.patch(f"/api/sessions/{pk}", {"title": "New"})),
    ("searches", lambda asker, page, pk: asker.get("/api/search?q=words")),
    ("exports", lambda asker, page, pk: asker.get(f"/api/sessions/{pk}/export")),
    ("invitations", lambda asker, page, pk: asker.post(f"/api/sessions/{pk}/invitations", {"role": "viewer"})),
]
PAGES: list[tuple[str, Act]] = [
    ("sessions", lambda asker, page, pk: page.post(reverse("new-session"))),
    ("searches", lambda asker, page, pk: page.get(reverse("search"), {"q": "words"})),
    ("exports", lambda asker, page, pk: page.get(reverse("session-export", args=[pk]), {"format": "json"})),
    ("uploads", _upload),
    ("upload_megabytes", _upload),
    ("imports", _import),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "act"), API, ids=[name for name, _act in API])
def test_api_refuses_with_a_problem(ana: User, settings: Settings, name: str, act: Act) -> None:
    settings.LIMITS = f"{name}=1/minute"
    session, asker = lifecycle.create_session(owner=ana), Asker(token_of(ana))
    first, second = (act(asker, Client(), session.pk) for _ in range(2))
    assert first.status_code < 300, first.content
    assert code(second) == (429, "rate_limited")
    assert 0 < int(second["Retry-After"]) <= 60
    assert second.json()["retry_after"] == int(second["Retry-After"])


@pytest.mark.django_db
@pytest.mark.usefixtures("own_files")
@pytest.mark.parametrize(("name", "act"), PAGES, ids=[name for name, _act in PAGES])
def test_pages_explain_a_refusal(ana: User, settings: Settings, name: str, act: Act) -> None:
    settings.LIMITS = f"{name}=1/minute"
    session, page = lifecycle.create_session(owner=ana), Client()
    page.force_login(ana)
    first, second = (act(Asker(""), page, session.pk) for _ in range(2))
    assert first.status_code != 429
    assert second.status_code == 429
    assert "Too many requests. Try again in " in second.content.decode()


@pytest.mark.django_db
def test_api_reports_how_many_requests_are_left(ana: User, settings: Settings) -> None:
    """The API reports the remaining requests of each token separately."""
    settings.LIMITS = "requests=2/minute"
    asker = Asker(token_of(ana))
    answers = [asker.get("/api/me") for _ in range(3)]
    assert {answer["RateLimit-Policy"] for answer in answers} == {'"requests";q=2;w=60'}
    assert [answer["RateLimit"].split(";")[:2] for answer in answers] == [
        ['"requests"', "r=1"],
        ['"requests"', "r=0"],
        ['"requests"', "r=0"],
    ]
    assert answers[2].status_code == 429
    assert Asker(token_of(ana)).get("/api/me").status_code == 200


async def test_socket_refuses_and_stays_open(node: TestNode, ana: User, settings: Settings) -> None:
    """The refusal has the seconds to wait, and Stop is never refused."""
    settings.LIMITS = "sends=1/minute, changes=1/minute"
    node.script([["Hello"]])
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        for frame in ({"type": "send", "text": "Hi"}, {"type": "rename", "title": "New"}):
            assert (await socket.ask(**frame))["type"] == "ack"
            refused = await socket.ask(**frame)
            assert (refused["type"], refused["code"]) == ("refused", "rate_limited")
            assert 0 < refused["retry_after"] <= 60
        assert (await socket.ask(type="cancel"))["type"] == "ack"
    assert await node.do(lambda: ChatMessage.objects.filter(session=session, text="Hi").count()) == 1


@pytest.mark.django_db
def test_faces_count_together(ana: User, settings: Settings) -> None:
    """Messages of sockets, of REST and the first ones of new sessions count against one limit."""
    settings.LIMITS = "sends=2/minute"
    session, asker = lifecycle.create_session(owner=ana), Asker(token_of(ana))
    with using_origin(Origin(Interface.SOCKET)):
        execute(ana, session.pk, make_command("send", text="One"))
    answers = [asker.post(f"/api/sessions/{session.pk}/messages", {"text": "Two"}).status_code for _ in range(2)]
    assert answers == [201, 429]
    with using_origin(Origin(Interface.PAGE)):
        with pytest.raises(RateLimited):
            lifecycle.begin_session(owner=ana, text="Three")
        assert lifecycle.begin_session(owner=ana).pk  # without a message


@pytest.mark.django_db
def test_whole_sessions_are_read_one_at_a_time_for_each_user(
    ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading large sessions uses a core for seconds, so a user's parallel requests are refused and other users are
    served."""
    monkeypatch.setattr(whole_sessions, "MAX_AT_ONCE", 1)
    is_read, is_held = threading.Event(), threading.Event()

    def read() -> None:
        with reading_whole(ana):
            is_held.set()
            is_read.wait(20)

    thread = threading.Thread(target=read)
    thread.start()
    assert is_held.wait(20)
    with reading_whole(bo):
        pass
    with pytest.raises(RateLimited), reading_whole(ana):
        pass
    is_read.set()
    thread.join()
    with reading_whole(ana):
        pass


@pytest.mark.django_db
def test_large_answers_that_a_user_does_not_read_are_bounded(
    ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of a user's unread answers is bounded, because each may have tens of megabytes.
    An answer that is closed or deleted makes room. Other users have their own limit.
    """
    monkeypatch.setattr(whole_sessions, "MAX_UNREAD", 5)

    def ask(user: User) -> HttpResponse:
        with reading_whole(user) as until_read:
            return until_read(HttpResponse("abc"))

    unread = [ask(ana), ask(ana)]
    with pytest.raises(RateLimited):
        ask(ana)
    ask(bo).close()
    unread.pop().close()
    unread.append(ask(ana))
    unread.clear()
    gc.collect()
    assert len([ask(ana), ask(ana)]) == 2


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["context", "context/estimate", "steps", "segments"])
def test_large_answers_count_until_they_are_read(ana: User, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    counted = list[tuple[int, bytes]]()

    def keep(self: object, user_id: int, response: HttpResponse) -> HttpResponse:
        counted.append((user_id, response.content))
        return response

    monkeypatch.setattr(whole_sessions._Unread, "keep", keep)
    session = lifecycle.create_session(owner=ana)
    answer = Asker(token_of(ana)).get(f"/api/sessions/{session.pk}/{path}")
    assert counted == [(ana.pk, answer.content)]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["context", "context/estimate", "requests/r_none", "steps", "segments"])
def test_projections_of_a_session_take_the_place_of_their_user(
    ana: User, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A projection of a session needs a slot of its user and is refused without a free one."""
    monkeypatch.setattr(whole_sessions, "MAX_AT_ONCE", 0)
    session = lifecycle.create_session(owner=ana)
    answer = Asker(token_of(ana)).get(f"/api/sessions/{session.pk}/{path}")
    assert (code(answer), answer["Retry-After"]) == ((429, "rate_limited"), "5")
    client = Client()
    client.force_login(ana)
    assert client.get(reverse("session-context", args=[session.pk])).status_code == 429
