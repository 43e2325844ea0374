"""Messages and session parts as HTML, and the frames that carry them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

import pytest

from chat.bus.events import StatusChanged
from chat.models import ChatMessage
from chat.rendering.messages import frames
from chat.session_snapshot import SessionSnapshot
from chat.snapshots import MessageSnapshot, ToolSnapshot

ID = "m_0123456789abcdef01234567"


def message(**columns: Any) -> MessageSnapshot:
    values = {"id": ID, "session_id": "s_1", "sequence": 7, "revision": 9, "role": "assistant", **columns}
    return MessageSnapshot.from_row(ChatMessage(**values))


def tool(**columns: Any) -> MessageSnapshot:
    return message(**{"type": "tool_group", "tool_name": "web_fetch", "arguments": {"url": "x"}, **columns})


def session(**values: Any) -> SessionSnapshot:
    given: dict[str, Any] = {
        "id": "s_1",
        "title": "",
        "status": "active",
        "agent": "assistant",
        "provider": "demo",
        "model": "one",
        "system_prompt": "",
        "owner_id": 1,
        "revision": 3,
        "context_used": None,
        "context_window": None,
        "session_total_tokens": 0,
        "agent_status": "idle",
        "tool_name": "",
    }
    return SessionSnapshot(**{**given, **values})


def text_of(html: str) -> str:
    """Return the visible text."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


# --- frames ------------------------------------------------------------------------------------------------------


def test_message_frame_carries_what_the_page_needs_to_place_it() -> None:
    """LIVE-02: a structural change is HTML with its revision and place."""
    given = message(text="Hello **you**")
    frame = frames.message_frame(given)
    assert {key: value for key, value in frame.items() if key != "html"} == {
        "op": "message",
        "revision": 9,
        "id": ID,
        "sequence": 7,
    }
    assert frame["html"] == frames.message_html(given)
    assert "Hello <strong>you</strong>" in frame["html"]


def test_streaming_message_comes_without_its_text() -> None:
    """The text of a streaming message arrives in snap and delta frames; a page load has the text so far."""
    given = message(status="streaming", text="so far")
    assert "so far" not in frames.message_frame(given)["html"]
    assert "so far" in frames.message_html(given)


def test_message_frame_names_the_sender_and_is_not_marked_as_mine() -> None:
    """Every viewer gets the same frame: data-user-id names the sender, and the browser compares."""
    html = frames.message_html(message(role="user", user_id=5, sender="Ana", text="x"))
    assert 'data-user-id="5"' in html
    assert "mine" not in html


def test_status_frame_says_what_the_agent_does() -> None:
    """UI-07: the status is hidden when idle, and otherwise "thinking" or the name of the called tool."""
    shown = [
        text_of(frames.status_frame(event)["html"])
        for event in (StatusChanged("idle"), StatusChanged("thinking"), StatusChanged("tool_calling", "bash"))
    ]
    assert shown == ["", "Thinking…", "Calling bash…"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("overloaded", "The model is overloaded. Retrying in 4 s…"),
        ("rate_limited", "The provider limits requests. Retrying in 4 s…"),
        ("connection_lost", "The request failed. Retrying in 4 s…"),
    ],
)
def test_status_frame_says_when_a_failed_request_is_repeated(code: str, words: str) -> None:
    """RUN-10, UI-07: users see why nothing comes."""
    event = StatusChanged("thinking", activity="retrying", code=code, retry_in=4)
    assert text_of(frames.status_frame(event)["html"]) == words


@pytest.mark.parametrize(
    ("figures", "words", "level"),
    [
        ((15_234, 200_000, 28_500), "Context: 7.6% · Session: 28.5K tokens", "low"),
        ((100_000, 200_000, 100_000), "Context: 50.0% · Session: 100.0K tokens", "middle"),
        ((160_000, 200_000, 1), "Context: 80.0% · Session: 1 tokens", "middle"),
        ((162_000, 200_000, 1), "Context: 81.0% · Session: 1 tokens", "high"),
        ((15_234, None, 28_500), "Context: 15.2K tokens · Session: 28.5K tokens", ""),
        ((None, 200_000, 0), "", ""),
    ],
)
def test_usage_frame_shows_context_and_tokens(
    figures: tuple[int | None, int | None, int], words: str, level: str
) -> None:
    """UI-08: the bar is green below 50 %, amber up to 80 % and red above.

    Without a known window, the tokens are shown.
    """
    used, window, total = figures
    html = frames.usage_frame(session(context_used=used, context_window=window, session_total_tokens=total))["html"]
    assert (text_of(html), f'<b class="{level}">' in html) == (words, bool(level))


def test_session_frame_brings_all_parts() -> None:
    frame = frames.session_frame(session(title="<i>Plan</i>", agent_status="thinking"), 12)
    assert (frame["op"], frame["revision"], frame["status"]) == ("session", 12, "thinking")
    assert set(frame["parts"]) == {"title", "agent", "model", "status", "usage", "context_bar", "archived"}
    assert frame["parts"]["title"].strip() == "&lt;i&gt;Plan&lt;/i&gt;"
    assert 'data-model="one"' in frame["parts"]["model"]


# --- messages -------------------------------------------------------------------------------------------------------


def test_turn_start_is_never_drawn() -> None:
    """turn_start is never rendered (UI-04)."""
    assert frames.message_html(message(type="turn_start", role="")) == ""


@pytest.mark.parametrize(
    ("seconds", "status", "words"),
    [
        (59.9, "complete", ""),
        (60.0, "complete", "Worked for 1 minute"),
        (90.0, "complete", "Worked for 1 minute 30 seconds"),
        (3.0, "interrupted", "Interrupted Continue"),
        (90.0, "interrupted", "Interrupted after 1 minute 30 seconds Continue"),
        (None, "complete", ""),
    ],
)
def test_turn_done_is_shown_for_long_and_interrupted_turns(seconds: float | None, status: str, words: str) -> None:
    """UI-04: a turn shows nothing below 60 s, and a line from 60 s on.

    An interrupted turn is reported and can be continued.
    """
    html = frames.message_html(message(type="turn_done", role="", duration_seconds=seconds, status=status))
    assert text_of(html) == words


@pytest.mark.parametrize(
    ("reason", "name", "seconds", "words"),
    [
        ("stopped", "Ana <b>", 3.0, "Stopped by Ana &lt;b&gt;"),
        ("stopped", "Ana %(time)s", 90.0, "Stopped by Ana %(time)s after 1 minute 30 seconds"),
        ("stopped", "", 3.0, "Interrupted"),
        ("restarted", "", 3.0, "Interrupted by a restart"),
        ("restarted", "", 90.0, "Interrupted by a restart after 1 minute 30 seconds"),
    ],
)
def test_interrupted_turn_says_why(reason: str, name: str, seconds: float, words: str) -> None:
    """UI-04, MSG-11: names the user who stopped it, or a restart; older rows have neither."""
    end = message(type="turn_done", role="", status="interrupted", duration_seconds=seconds)
    html = frames.message_html(replace(end, end_reason=reason, stopped_by=name))
    assert text_of(html).replace("Continue", "").strip() == words


@pytest.mark.parametrize(
    ("given", "meta"),
    [
        (message(role="user", sender="Ana", text="x"), "14:30"),
        (message(type="error", text="x", duration_ms=20_000), "14:30"),
        (message(text="x", duration_ms=9_999), "14:30"),
        (message(text="x", duration_ms=35_000), "✻ 35s · 14:30"),
        (tool(status="running", duration_ms=None), "14:30"),
        (tool(status="complete", duration_ms=328), "328ms · 14:30"),
        (tool(status="complete", duration_ms=0), "0ms · 14:30"),
    ],
)
def test_meta_shows_time_and_duration(given: MessageSnapshot, meta: str) -> None:
    """UI-02, UI-03: the duration is next to the time, not in the card."""
    html = frames.message_html(replace(given, timestamp="2026-02-28T14:30:05+00:00"))
    card, line = html.split('<p class="meta">')
    assert text_of(line) == meta
    assert '<time datetime="2026-02-28T14:30:05+00:00">' in line
    assert not any(figure in text_of(card) for figure in ("328ms", "35s"))


def test_names_are_each_messages_own() -> None:
    """UI-06, MSG-04: a user's name, a model's name; none before any model is known (the browser has the agent's)."""
    names = [
        frames.message_html(given).split('<p class="who">')[1].split("</p>")[0]
        for given in (message(role="user", sender="", text="x"), message(model="claude-x", text="x"), message(text="x"))
    ]
    assert names == ["User", "claude-x", ""]


def test_speaker_tells_runs_of_messages_apart() -> None:
    """UI-05: two users and two models have different speakers, and all kinds of one model's messages have the same."""

    def speaker(given: MessageSnapshot) -> str:
        return frames.message_html(given).split('data-speaker="')[1].split('"')[0]

    one, other = message(model="a", text="x"), message(model="b", text="x")
    assert speaker(one) == speaker(tool(model="a")) == speaker(message(type="reasoning", model="a"))
    people = [message(role="user", sender="Ana", user_id=number, text="x") for number in (1, 2)]
    assert len({speaker(given) for given in (one, other, *people)}) == 4


def test_user_text_is_shown_exactly() -> None:
    """MSG-12: a user message is text, not markup."""
    written = "# no heading\n  <script>alert(1)</script> **no bold**\n\n&amp; 👩‍👩‍👧 שלום"
    html = frames.message_html(message(role="user", text=written))
    assert "# no heading\n  &lt;script&gt;alert(1)&lt;/script&gt; **no bold**\n\n&amp;amp; 👩‍👩‍👧 שלום" in html


def test_long_user_text_is_folded() -> None:
    folded = [
        "Show all" in frames.message_html(message(role="user", text=text)) for text in ("x", "x" * 3001, "x\n" * 41)
    ]
    assert folded == [False, True, True]


def test_queued_message_is_a_chip_with_its_actions() -> None:
    """RUN-06: shown as queued to everyone; editing and withdrawing are offered."""
    frame = frames.message_frame(
        message(role="user", sender="Ana", user_id=3, status="queued", sequence=None, text="later")
    )
    assert frame["sequence"] is None
    assert text_of(frame["html"]).startswith("AN Ana later")
    assert 'data-action="edit-queued"' in frame["html"]
    assert 'data-action="withdraw"' in frame["html"]


def test_error_offers_a_retry_of_itself() -> None:
    """An error row has a Retry button for its turn (RUN-10)."""
    html = frames.message_html(message(type="error", text="The key is wrong."))
    assert "The key is wrong." in html
    assert f'data-action="retry" data-id="{ID}"' in html


@pytest.mark.parametrize(
    ("kept", "remedy"),
    [
        ({"code": "rate_limited", "remedy": "retry"}, "retry"),
        ({"code": "rejected", "remedy": "model"}, "model"),
        ({"code": "authentication", "remedy": "setting"}, "setting"),
        (None, "retry"),
        ("model", "retry"),
        ({"code": ["<b>"], "remedy": {"model": 1}}, "retry"),
        ({"remedy": "reboot"}, "retry"),
    ],
)
def test_error_offers_its_remedy_or_a_retry(kept: object, remedy: str) -> None:
    """RUN-10: another model if a retry would fail again; errors with data of unknown origin offer a retry."""
    given = message(type="error", text="No.", provider_data={"error": kept})
    html = frames.message_html(given)
    assert given.error is not None
    assert (given.error.remedy, 'data-action="choose-model"' in html) == (remedy, remedy != "retry")
    assert ("Choose another model." in html, "until an administrator" in html) == (
        remedy == "model",
        remedy == "setting",
    )


@pytest.mark.parametrize("code", ["tools_refused", "refused"])
def test_refusals_that_a_user_can_avoid_do_not_advise_against_a_retry(code: str) -> None:
    """RUN-10: a retry succeeds after the user has switched off the tools, or has edited the declined message."""
    given = message(type="error", text="No.", provider_data={"error": {"code": code, "remedy": "model"}})
    html = frames.message_html(given)
    assert ("Retrying is unlikely" in html, 'data-action="choose-model"' in html) == (False, True)


def test_reasoning_is_open_while_it_streams_and_folded_after() -> None:
    streaming = frames.message_html(message(type="reasoning", status="streaming", text="hm"))
    done = frames.message_html(message(type="reasoning", text="hm", duration_ms=12_000))
    assert (re.search('data-default="open" +open', streaming) is not None, "Thinking" in streaming) == (True, True)
    assert (re.search('data-default="closed" *>', done) is not None, "Thought for 12s" in done) == (True, True)


def test_excluded_and_edited_messages_say_so() -> None:
    """Excluded and edited messages are marked (MSG-09, MSG-11)."""
    html = frames.message_html(replace(message(text="x"), include_in_context=False, edited=True))
    assert "hidden from the model" in html
    assert "edited" in html


# --- tools -------------------------------------------------------------------------------------------------------


def test_tool_card_is_folded_over_arguments_and_result() -> None:
    """UI-10: other tools show arguments and result folded."""
    html = frames.message_html(tool(arguments={"url": "https://x.y", "n": 2}, result='{"a":[1]}'))
    assert '<details class="tool" data-state="done" data-default="closed">' in html
    assert '<span class="nt">"url"</span>: <span class="s">"https://x.y"</span>' in html
    assert '{\n  <span class="nt">"a"</span>: [\n    <span class="m">1</span>\n  ]\n}' in html
    assert "terminal" not in html


@pytest.mark.parametrize("name", ["bash", "python", "shell", "execute", "run"])
def test_terminal_tool_shows_its_output(name: str) -> None:
    """UI-10: the output as a terminal block under the card; while it runs, the last lines so far."""
    running = frames.message_html(tool(tool_name=name, arguments={"command": "ls -l"}, status="running"))
    done = frames.message_html(tool(tool_name=name, arguments={"command": "ls -l"}, result="a\x1b[1mb"))
    assert 'class="terminal"' not in running
    assert 'data-state="running"' in running
    lines = "".join(f"Line {number}\n" for number in range(1, 101))
    running = frames.message_html(tool(tool_name=name, result=lines, status="running"))
    assert "<pre data-copy>\nLine 85\n" in running
    assert "Line 100</pre>" in running
    assert '<span class="prompt">$</span> ls -l</pre><pre data-copy>\na<span class="bold">b</span></pre>' in done


def test_failed_and_interrupted_tools_are_marked() -> None:
    states = [
        frames.message_html(given).split('data-state="')[1].split('"')[0]
        for given in (tool(), tool(is_error=True), tool(status="interrupted", is_error=True), tool(status="pending"))
    ]
    assert states == ["done", "failed", "interrupted", "waiting"]


@pytest.mark.parametrize(
    "arguments", [None, {}, [], "text", 7, {"a": {"b": [None, True, 1.5]}}, {"x": "y" * 50_000}, {"<b>": '"'}]
)
def test_tool_card_takes_any_arguments(arguments: object) -> None:
    """MSG-10: any arguments that the model sent are shown."""
    html = frames.message_html(tool(arguments=arguments))
    assert "Failed to render" not in html
    assert "<b>" not in html


def test_tool_without_a_name_is_unknown() -> None:
    """MSG-10: a tool call without a name is shown as `unknown`."""
    assert ">unknown<" in frames.message_html(tool(tool_name=""))


# --- rendering errors -----------------------------------------------------------------------------------------------


class Unshowable(dict[str, str]):
    def __len__(self) -> int:
        raise RuntimeError("no")


def test_unrenderable_tool_shows_the_fallback_card(caplog: pytest.LogCaptureFixture) -> None:
    """MSG-10: the card shows "Failed to render tool: NAME", and the rest of the page is rendered."""
    given = replace(tool(), tool=ToolSnapshot("c", "web_fetch", Unshowable(), "", False, None))
    frame = frames.message_frame(given)
    assert text_of(frame["html"]) == "Failed to render tool: web_fetch"
    assert (f'id="{ID}"' in frame["html"], 'data-sequence="7"' in frame["html"]) == (True, True)
    assert ID in caplog.text


def test_unrenderable_message_shows_the_fallback_card(caplog: pytest.LogCaptureFixture) -> None:
    """A message that fails to render shows the fallback card (MSG-10)."""
    given = replace(tool(), tool=None)
    assert text_of(frames.message_html(given)) == "Failed to render tool: unknown"
    odd = replace(message(), **cast(dict[str, Any], {"text": None}))
    assert text_of(frames.message_html(odd)) == "Failed to render this message"
