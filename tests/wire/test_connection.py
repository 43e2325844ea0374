"""The bytes of an answer: how they arrive, how they stop, and how reading is aborted."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import socket
from collections import Counter
from contextlib import aclosing
from dataclasses import replace

import pytest

from agents.errors import ConnectionLost, ProviderError, RequestRejected, ResponseBroken, ResponseTimedOut
from agents.events import ProviderEvent, ResponseDone, TextDelta
from agents.messages import Json, Text
from agents.providers.http.client import BURST
from agents.providers.openai.provider import OpenAIProvider
from tests.wire import anthropic, openai, responses
from tests.wire.script import Cut, Pause, Reply
from tests.wire.server import WireServer
from tests.wire.vendors import OPENAI, Provider, Vendor, ask, plain, request


async def test_answer_arrives_whole_in_any_pieces(wire: WireServer, vendor: Vendor) -> None:
    """RUN-02: the boundaries of packets, even inside a character, change nothing."""
    raw = b"".join(vendor.text("漢字 ", "😀", " é"))
    cuts = sorted(random.Random(7).sample(range(len(raw)), 40))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    wire.script(Reply(pieces))
    provider = vendor.make(wire)
    events = await ask(provider)
    assert events[0] == TextDelta("漢字 😀 é")
    assert plain(events) == (Text("漢字 😀 é"),)
    await provider.close()


async def test_comments_and_crlf_do_not_matter(wire: WireServer, vendor: Vendor) -> None:
    """RUN-02: keep-alive comments and line ends of CR and LF are part of the format."""
    steps = [b": OPENROUTER PROCESSING\r\n\r\n", *(one.replace(b"\n", b"\r\n") for one in vendor.text("ok"))]
    wire.script(Reply(steps))
    provider = vendor.make(wire)
    assert plain(await ask(provider)) == (Text("ok"),)
    await provider.close()


async def test_events_after_the_end_count_for_nothing(wire: WireServer, vendor: Vendor) -> None:
    """MSG-08: a call after the end of an answer is not run, also if it arrives together with the end."""
    ghosts = {
        "anthropic": anthropic.sse(*anthropic.tool_use(1, "toolu_1", "add", "{}")),
        "openai": openai.sse(*openai.text("ghost"), *openai.tool_call(0, "call_1", "add", "{}")),
        "responses": responses.sse(*responses.message(1, "ghost"), *responses.function_call(2, "call_1", "add", "{}")),
    }
    wire.script(Reply([b"".join([*vendor.text("hello"), *ghosts[vendor.name]])]))
    provider = vendor.make(wire)
    assert plain(await ask(provider)) == (Text("hello"),)
    await provider.close()


async def test_compressed_answer_is_read(wire: WireServer, vendor: Vendor) -> None:
    """RUN-02: a stream that a proxy has compressed is read."""
    packed = gzip.compress(b"".join(vendor.text("ok")))
    wire.script(Reply([packed[:20], packed[20:]], headers={"Content-Encoding": "gzip"}))
    provider = vendor.make(wire)
    assert plain(await ask(provider)) == (Text("ok"),)
    await provider.close()


async def test_half_a_surrogate_pair_does_no_harm(wire: WireServer, vendor: Vendor) -> None:
    """MSG-12: half of a surrogate pair becomes U+FFFD, so that the text can be stored."""
    steps = [one.replace(b"half", rb"a\ud83d") for one in vendor.text("half", "\ud83d\ude00")]
    wire.script(Reply(steps))
    provider = vendor.make(wire)
    assert plain(await ask(provider)) == (Text("a\ufffd😀"),)
    await provider.close()


async def test_refused_connection_names_the_address(vendor: Vendor) -> None:
    """RUN-10: the error of a refused connection has the address."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        server = WireServer(reserved.getsockname()[1])
        provider = vendor.make(server)
        address = re.escape(provider.endpoint.url)
        with pytest.raises(
            ConnectionLost,
            match=rf"Couldn’t reach {vendor.name} at {address}: the connection was refused \(.* running\?\)\.$",
        ):
            await ask(provider)
    await provider.close()


async def test_unknown_host_is_named(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: an unknown host has a different error than a server that is down."""
    provider = type(vendor.make(wire))("x", "k", "http://no-such-host.invalid", max_retries=0)
    with pytest.raises(ConnectionLost, match="the host name couldn’t be resolved"):
        await ask(provider)
    await provider.close()


async def test_password_in_the_address_is_not_told(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: a password in the address is not part of the error."""
    provider = type(vendor.make(wire))("x", "k", "http://me:hunter2@no-such-host.invalid/v1", max_retries=0)
    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    assert "hunter2" not in str(caught.value) + repr(provider.endpoint)
    await provider.close()


UNSENDABLE = {
    "port": ("http://127.0.0.1:port", "hello"),
    "half a character": (None, "a\ud83d"),
}


@pytest.mark.parametrize("what", UNSENDABLE)
async def test_request_that_cannot_be_sent_is_refused(wire: WireServer, vendor: Vendor, what: str) -> None:
    """RUN-10, MSG-12: a request that cannot be sent because of its configuration or text is a permanent error and not
    repeated."""
    url, text = UNSENDABLE[what]
    provider = type(vendor.make(wire))("x", "k", url or wire.anthropic_url, key_hint="X_KEY", max_retries=0)
    with pytest.raises(RequestRejected, match=r"to x: .* Check its address and API key \(X_KEY\)"):
        await ask(provider, request(text))
    await provider.close()


@pytest.mark.parametrize("ending", [[Cut()], []], ids=["cut", "closed"])
async def test_connection_lost_before_the_answer(wire: WireServer, vendor: Vendor, ending: list[Cut]) -> None:
    """RUN-10: a server that disconnects without an answer is reported as a lost connection."""
    wire.script(Reply(ending))
    provider = vendor.make(wire)
    with pytest.raises(ConnectionLost):
        await ask(provider)
    await provider.close()


@pytest.mark.parametrize("ending", [[Cut()], []], ids=["cut", "closed"])
async def test_connection_lost_in_the_middle_keeps_what_was_said(
    wire: WireServer, vendor: Vendor, ending: list[Cut]
) -> None:
    """RUN-10: neither a cut nor an orderly close in mid-answer counts as its end, and the text is kept."""
    read = asyncio.Event()
    wire.script(Reply([*vendor.opening("so far"), read, *ending]))
    provider = vendor.make(wire)
    seen: list[ProviderEvent] = []
    with pytest.raises(ConnectionLost, match="during the answer"):
        await _ask_and_tell(provider, seen, read)
    assert seen == [TextDelta("so far")]
    await provider.close()


async def _ask_and_tell(provider: Provider, seen: list[ProviderEvent], reached: asyncio.Event) -> None:
    async with aclosing(provider.stream(request())) as events:
        async for event in events:
            seen.append(event)
            reached.set()


@pytest.mark.parametrize("event", [b'data: {"type": "content_blo', b"data: {"])
async def test_connection_lost_inside_an_event_is_lost_not_broken(
    wire: WireServer, vendor: Vendor, event: bytes
) -> None:
    """RUN-10: a part of an event means that the connection was cut, so the request may be repeated."""
    wire.script(Reply([*vendor.opening("a"), event]))
    provider = vendor.make(wire)
    with pytest.raises(ConnectionLost):
        await ask(provider)
    await provider.close()


async def test_silent_server_is_given_up(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: without a first byte in time, before or after the status line, the connection is closed."""
    forever = asyncio.Event()
    wire.script(Reply(vendor.text("ok")), Reply(hold=forever), Reply([forever]))
    provider = vendor.make(wire)
    await ask(provider)
    provider.first_timeout = 0.1
    for count in (2, 3):
        while len(wire.requests) < count:  # on a busy machine, a request may take longer than the timeout to arrive
            with pytest.raises(ResponseTimedOut, match=r"sent nothing for 0\.1 seconds"):
                await ask(provider)
        await (await wire.received(count)).left()
    await provider.close()


async def test_silence_in_the_middle_is_given_up(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: an answer that stops arriving ends with a timeout."""
    wire.script(Reply([*vendor.opening("a"), asyncio.Event()]))
    provider = vendor.make(wire, timeout=0.2)
    seen: list[ProviderEvent] = []
    with pytest.raises(ResponseTimedOut):
        await ask(provider, seen=seen)
    assert seen == [TextDelta("a")]
    await (await wire.received(1)).left()
    await provider.close()


async def test_slow_start_is_not_slow_going(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the wait for the first byte has a timeout of its own, for models that reason for long."""
    wire.script(Reply([Pause(0.5), *vendor.text("ok")]))
    provider = vendor.make(wire, timeout=0.2, first_timeout=30)
    assert plain(await ask(provider)) == (Text("ok"),)
    await provider.close()


async def test_slow_consumer_is_never_interrupted(wire: WireServer, vendor: Vendor) -> None:
    """RUN-11: the timeout counts only the network's silence, so a consumer may take any time for an event."""
    wire.script(Reply(vendor.text("a", "b")))
    provider = vendor.make(wire, timeout=0.2)
    looked_away = asyncio.Event()
    seen: list[ProviderEvent] = []
    async with aclosing(provider.stream(request())) as events:
        async for event in events:
            if not seen:
                asyncio.get_running_loop().call_later(0.5, looked_away.set)
                await looked_away.wait()
            seen.append(event)
    assert isinstance(seen[-1], ResponseDone)
    await provider.close()


GARBAGE = {
    "bytes": (random.Random(1).randbytes(5000), "text/event-stream"),
    "page": (b"<!DOCTYPE html><html><body>Sign in</body></html>", "text/html"),
    "no json": (b"data: hello\n\n", "text/event-stream"),
    "no object": (b"data: [1, 2]\n\n", "text/event-stream"),
    "wrong shape": (
        b'data: {"type": "content_block_delta", "choices": 7}\n\ndata: {"type": "response.completed"}\n\n',
        "text/event-stream",
    ),
    "json of something else": (b'{"hello": 1}', "application/json"),
    "json cut short": (b'{"choices": [', "application/json"),
    "empty": (b"", "application/json"),
}


@pytest.mark.parametrize("kind", GARBAGE)
async def test_garbage_is_reported_as_a_broken_response(wire: WireServer, vendor: Vendor, kind: str) -> None:
    """RUN-10: an answer that is not from a model is a permanent error and not repeated."""
    body, content_type = GARBAGE[kind]
    wire.script(Reply([body], content_type=content_type))
    provider = vendor.make(wire)
    with pytest.raises(ResponseBroken, match="Unexpected response" if body else "Empty response"):
        await ask(provider)
    await provider.close()


async def test_burst_lets_others_work(wire: WireServer, vendor: Vendor) -> None:
    """LIVE-01: thousands of tokens that arrive together do not delay other sessions."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    provider = vendor.make(wire)
    beside = asyncio.create_task(other())
    at_turn: list[int] = []
    async for event in provider.stream(request("stream 9000 tokens")):
        if isinstance(event, TextDelta):
            at_turn.append(turns)
    beside.cancel()
    assert len(at_turn) > 2 * BURST
    assert max(Counter(at_turn).values()) <= BURST
    await provider.close()


async def test_late_usage_is_not_waited_for(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-10: an answer that has ended is complete, even if the server does not close the stream."""
    monkeypatch.setattr("agents.providers.http.client.LATE_USAGE", 0.05)
    whole = OPENAI.text("ok")
    wire.script(Reply([*whole[:-2], asyncio.Event()]))
    provider = OPENAI.make(wire)
    events = await ask(provider)
    assert plain(events) == (Text("ok"),)
    assert isinstance(events[-1], ResponseDone)
    await provider.close()


async def test_models_are_listed(wire: WireServer, vendor: Vendor) -> None:
    """RUN-05: the models have the order of the vendor's list."""
    provider = vendor.make(wire)
    assert list(await provider.list_models()) == ["wire-large", "wire-small"]
    await provider.close()


async def test_context_windows_are_read_from_the_list(wire: WireServer) -> None:
    """RUN-05: vLLM, SGLang and OpenRouter state the windows of their models."""
    stated: list[Json] = [
        {"id": "llama-3.1-8b", "max_model_len": 8192},
        {"id": "openai/gpt-4o", "context_length": 128_000},
        {"id": "odd", "max_model_len": None, "context_length": "4k"},
        {"id": "silent"},
    ]
    wire.script_lists(Reply.of_json({"object": "list", "data": [{"object": "model"} | model for model in stated]}))
    provider = OPENAI.make(wire)
    windows = {"llama-3.1-8b": 8192, "openai/gpt-4o": 128_000, "odd": None, "silent": None}
    assert {name: model.window for name, model in (await provider.list_models()).items()} == windows
    await provider.close()


@pytest.mark.parametrize("body", [b"<html>", b'{"data": 7}', b"[]", b'{"data": [{"id": null}, 3]}'])
async def test_broken_listing_is_a_provider_error(wire: WireServer, vendor: Vendor, body: bytes) -> None:
    """RUN-05: a malformed list is a provider error, which the registry handles."""
    kind = "text/html" if body.startswith(b"<") else "application/json"
    wire.script_lists(Reply([body], content_type=kind))
    provider = vendor.make(wire)
    with pytest.raises(ResponseBroken):
        await provider.list_models()
    await provider.close()


async def test_refused_listing_says_why(wire: WireServer, vendor: Vendor) -> None:
    """RUN-10: the error of a refused list has the server's message, as for a stream."""
    wire.script_lists(vendor.error(529, "overloaded_error", "busy"))
    provider = vendor.make(wire)
    with pytest.raises(Exception, match="busy"):
        await provider.list_models()
    await provider.close()


async def test_server_without_a_listing_is_not_said_to_lack_a_model(wire: WireServer, vendor: Vendor) -> None:
    """RUN-05, RUN-10: the error does not name a model, because the request had none."""
    wire.script_lists(vendor.error(404, "not_found_error", "Not Found"))
    provider = vendor.make(wire)
    with pytest.raises(RequestRejected, match=r"doesn’t list its models\. It says: Not Found"):
        await provider.list_models()
    await provider.close()


async def test_provider_works_again_after_close(wire: WireServer, vendor: Vendor) -> None:
    """RUN-16: closing releases the connections, and later requests open new ones."""
    provider = vendor.make(wire)
    for _ in range(2):
        assert plain(await ask(provider)) == (Text("You said: hello"),)
        await provider.close()


async def test_request_says_who_asks(wire: WireServer, vendor: Vendor) -> None:
    """RUN-01: the SDK sends the key, requests a stream, and sends the expected body."""
    provider = vendor.make(wire)
    await ask(provider, request("hi", model="m-1", options={"temperature": 0.5}))
    received = wire.requests[0]
    assert "sk-secret-0123456789" in received.headers["authorization"]
    assert json.dumps(received.body["model"]) == '"m-1"'
    assert (received.body["stream"], received.body["temperature"]) == (True, 0.5)
    await provider.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_proxy_is_not_used_for_this_machine(
    wire: WireServer, vendor: Vendor, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """RUN-02: a proxy of the environment could not reach a model server on this machine, and would get the messages."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    wire.script(Reply(vendor.text("ok")))
    provider = vendor.make(wire)
    provider.endpoint = replace(provider.endpoint, url=provider.endpoint.url.replace("127.0.0.1", host))
    assert plain(await ask(provider)) == (Text("ok"),)
    await provider.close()


async def test_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-10: not the model server, which was not tried, is named as the cause."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    provider = OpenAIProvider("openai", "key", "http://models.example/v1", max_retries=0)
    with pytest.raises(ConnectionLost, match=r"the proxy 127\.0\.0\.1:9 couldn’t be reached"):
        await ask(provider)
    await provider.close()
