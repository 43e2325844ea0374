"""The models that a server offers: when the list is requested, and that nothing waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from agents import discovery
from agents.config import ProviderConfig
from agents.discovery import FRESH_SECONDS, RETRY_SECONDS, Listing
from agents.errors import ConnectionLost
from agents.providers.base import ListedModel
from agents.vendors import VENDORS


class Server:
    """A listing endpoint and a clock, which a test controls."""

    def __init__(self) -> None:
        self.answers: Iterator[Any] = iter(())
        self.asked = 0
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    async def list_models(self) -> Mapping[str, ListedModel]:
        self.asked += 1
        answer = next(self.answers)
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return {"late": ListedModel()}
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Mapping) else dict.fromkeys(answer, ListedModel())


def listing(server: Server, *answers: Any, **config: Any) -> Listing:
    server.answers = iter(answers)
    kind = {"type": "openai", "base_url": "http://x/v1"} | config
    return Listing("local", ProviderConfig.model_validate(kind), server.list_models, server.clock)


async def test_listed_models_are_asked_for_once_in_ten_minutes() -> None:
    server = Server()
    models = listing(server, ["b", "a"], ["c"])
    for server.now in (0, 1, FRESH_SECONDS - 1):
        await models.refresh()
    assert (models.known(), server.asked) == (["b", "a"], 1)


async def test_listed_models_stay_while_the_server_is_asked_again() -> None:
    """A known list is used while the server is queried again, and a failure keeps it."""
    server, gate = Server(), asyncio.Event()
    models = listing(server, ["a"], gate, ConnectionLost("It is gone."), ["c"])
    await models.refresh()
    server.now = FRESH_SECONDS
    await models.refresh()
    assert models.known() == ["a"]
    gate.set()
    await until(lambda: models.known() == ["late"])
    server.now += FRESH_SECONDS
    await models.refresh()
    await until(lambda: models.problem == "It is gone.")
    assert models.known() == ["late"]
    server.now += RETRY_SECONDS
    await models.refresh()
    await until(lambda: models.known() == ["c"])
    assert models.problem == ""


async def test_concurrent_refreshes_share_one_request_even_if_one_is_cancelled() -> None:
    server, gate = Server(), asyncio.Event()
    models = listing(server, gate)
    first, second = asyncio.create_task(models.refresh()), asyncio.create_task(models.refresh())
    await until(lambda: server.asked == 1)
    first.cancel()
    gate.set()
    await second
    assert (models.known(), server.asked) == (["late"], 1)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (asyncio.Event, "local did not list its models within 0.01 seconds."),
        (lambda: ConnectionLost("No answer."), "No answer."),
        (lambda: KeyError("data"), "local returned a list of models that Parley cannot read."),
        (lambda: [], "local offers no chat models."),
    ],
)
async def test_silent_or_broken_listing_blocks_no_other(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any], problem: str
) -> None:
    monkeypatch.setattr(discovery, "LISTING_SECONDS", 0.01)
    models = listing(Server(), answer())
    await models.refresh()
    assert (models.known(), models.problem) == ([], problem)


async def test_list_that_comes_late_is_used_and_delays_pages_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "LISTING_SECONDS", 0.01)
    server, gate = Server(), asyncio.Event()
    models = listing(server, gate)
    await models.refresh()
    assert (models.known(), models.problem) == ([], "local did not list its models within 0.01 seconds.")
    monkeypatch.setattr(discovery, "LISTING_SECONDS", 3600.0)
    server.now = 3600.0
    async with asyncio.timeout(20):
        await models.refresh()
    gate.set()
    await until(lambda: models.known() == ["late"])
    assert (models.problem, server.asked) == ("", 1)


async def test_vendor_falls_back_to_known_names() -> None:
    models = listing(Server(), ConnectionLost("no"), type="anthropic", base_url=None)
    await models.refresh()
    assert models.known() == list(VENDORS["anthropic"].models)


async def test_only_chat_models_of_openai_are_offered_default_first() -> None:
    names = [
        "whisper-1",
        "gpt-4o",
        "text-embedding-3-large",
        "o3",
        "dall-e-3",
        "gpt-5.4",
        "gpt-5-pro",
        "tts-1",
        "babbage-002",
    ]
    names += [
        "gpt-4o-realtime-preview",
        "gpt-4o-audio-preview",
        "gpt-image-1",
        "omni-moderation-latest",
        "sora-2",
        "o1-pro",
    ]
    names += [
        "gpt-5-codex",
        "gpt-4o-mini-transcribe",
        "gpt-3.5-turbo-instruct",
        "ft:gpt-4o:team",
        "gpt-4o-search-preview",
    ]
    names += ["gpt-6.1-sol", "gpt-6-cyber", "gpt-live-1"]
    models = listing(Server(), names, base_url=None)
    await models.refresh()
    assert models.known() == ["gpt-6.1-sol", "o3", "o1-pro", "gpt-5.4", "gpt-5-pro", "gpt-5-codex", "gpt-4o"]
    models = listing(Server(), names, base_url=None, api="chat")
    await models.refresh()
    assert models.known() == ["gpt-5.4", "o3", "gpt-6.1-sol", "gpt-4o"]


async def test_own_server_keeps_its_order_without_embeddings() -> None:
    models = listing(Server(), ["nomic-embed-text", "qwen3:8b", "llama3.2", "qwen3:8b", ""])
    await models.refresh()
    assert models.known() == ["qwen3:8b", "llama3.2"]


async def test_own_server_offers_its_chat_models_that_follow_instructions() -> None:
    """In the names of open models, "Instruct" is the chat model. Many servers offer no other one."""
    names = ["meta-llama/Llama-3.1-8B-Instruct", "qwen2.5:7b-instruct", "openai/gpt-4o-search-preview"]
    models = listing(Server(), names)
    await models.refresh()
    assert (models.known(), models.problem) == (names, "")


async def test_window_that_the_server_states_is_kept() -> None:
    """RUN-05: while the server is not asked again, or fails, its earlier list counts."""
    server = Server()
    models = listing(server, {"a": ListedModel(8192), "b": ListedModel()}, ConnectionLost("It is gone."))
    assert models.stated("a").window is None
    await models.refresh()
    server.now = FRESH_SECONDS
    await models.refresh()
    await until(lambda: models.problem == "It is gone.")
    assert (models.stated("a").window, models.stated("b").window, models.stated("c").window) == (8192, None, None)


@pytest.mark.parametrize(
    "config",
    [
        {"models": ["mine"], "context_window": 4096},
        {"models": {"mine": {"context_window": 4096}}},
        {"models": ["mine"], "base_url": None},
        {"models": ["mine"], "type": "demo", "base_url": None},
    ],
)
async def test_configured_models_are_not_asked_for_without_need(config: dict[str, Any]) -> None:
    server = Server()
    models = listing(server, **config)
    await models.refresh()
    await asyncio.sleep(0)
    assert (models.known(), server.asked) == (["mine"], 0)


async def test_own_server_is_asked_for_the_windows_of_configured_models() -> None:
    """RUN-05: pages do not wait for this answer, and the other models of the server are not offered."""
    models = listing(
        Server(), {"mine": ListedModel(8192), "other": ListedModel(4096)}, models={"mine": {"max_tokens": 8192}}
    )
    await models.refresh()
    assert models.stated("mine").window is None
    await until(lambda: models.stated("mine").window == 8192)
    assert (models.known(), models.problem) == (["mine"], "")


@pytest.mark.parametrize(("name", "asked"), [("claude-opus-9", 1), ("claude-opus-4-8", 0)])
async def test_anthropic_is_asked_about_configured_models_that_are_newer(name: str, asked: int) -> None:
    """RUN-05, RUN-16: its list states the window and the levels of effort. The tables have those of older models."""
    server = Server()
    models = listing(server, {name: ListedModel(2_000_000)}, type="anthropic", models=[name])
    await models.refresh()
    await asyncio.sleep(0)
    assert (models.known(), server.asked) == ([name], asked)


@pytest.mark.parametrize("answer", [ConnectionLost("No answer."), KeyError("data"), []])
async def test_configured_models_have_no_problem_if_the_server_lists_none(answer: Any) -> None:
    server = Server()
    models = listing(server, answer, {"mine": ListedModel(8192)}, models=["mine"])
    await models.refresh()
    await until(lambda: server.asked == 1)
    server.now = FRESH_SECONDS
    await models.refresh()
    await until(lambda: models.stated("mine").window == 8192)
    assert (models.known(), models.problem) == (["mine"], "")


async def test_closing_ends_a_question_that_is_open() -> None:
    server = Server()
    models = listing(server, asyncio.Event())
    waiting = asyncio.create_task(models.refresh())
    await until(lambda: server.asked == 1)
    await models.close()
    await waiting
    assert models.known() == []


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until the condition is true."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is awaited sets no event
            await asyncio.sleep(0)
