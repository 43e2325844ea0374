"""The layout of a conversation: the width of answers, runs of tool calls, and clocks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from playwright.async_api import Locator, expect

from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import reply
from tests.support.server import Server, run_in
from tests.wire.server import WireServer

CALLS = """
from django.utils import timezone
from chat.models import ChatMessage, Session
session, now = Session.objects.get(), timezone.now()
plain = {"session": session, "model": "one", "provider": "wire", "timestamp": now}
call = {**plain, "type": "tool_group", "tool_name": "read_file", "duration_ms": 12}
rows = [{**plain, "role": "assistant", "text": "I will read."}]
rows += [{**call, "arguments": {"path": f"part_{number}.py"}, "result": "x"} for number in range(6)]
rows[3] |= {"is_error": True, "status": "failed", "result": "No such file"}
rows += [{**plain, "role": "assistant", "text": "I have read."}]
for number, row in enumerate(rows, 1):
    ChatMessage.objects.create(sequence=number, revision=number, **row)
Session.objects.update(revision=8)
"""


async def test_answer_has_the_width_of_the_column_from_its_first_letter(ana: Person, model: WireServer) -> None:
    """UI-05: an answer is as wide as the column from its first letter on, and keeps its width."""
    more = asyncio.Event()
    model.script(reply("A", gate=more))
    await ana.say("Go")
    bubble = ana.answers.first.locator(".bubble")
    await expect(bubble).to_contain_text("A")
    width = await width_of(bubble)
    assert width > await width_of(ana.answers.first) * 0.9
    more.set()
    await ana.sees_state("idle")
    assert await width_of(bubble) == width


async def test_wide_code_and_tables_go_beyond_the_column(ana: Person, model: WireServer) -> None:
    """Code and tables may be wider than the column, up to the page's width, before they scroll.

    Text stays in the column, and the page never scrolls sideways.
    """
    table = "| " + " | ".join(f"A long heading {number}" for number in range(9)) + " |\n" + "|---" * 9 + "|\n"
    code = "```\n" + "wide " * 80 + "\n```"
    model.script(reply(f"{table}\n{code}\n\n" + "Many words. " * 60))
    await ana.page.set_viewport_size({"width": 1700, "height": 900})
    await ana.say("Go")
    bubble = ana.answers.first.locator(".bubble")
    await expect(bubble).to_contain_text("Many words.")
    await ana.sees_state("idle")
    for wide in (bubble.locator(".table-wrap"), bubble.locator(".code")):
        assert await width_of(wide) > await width_of(bubble) + 100
    assert await width_of(bubble.locator("p")) < await width_of(bubble)
    for width in (1700, 1000, 390):
        await ana.page.set_viewport_size({"width": width, "height": 900})
        assert await ana.page.locator("#log").evaluate("log => log.scrollWidth - log.clientWidth") == 0
    assert await width_of(bubble.locator(".table-wrap")) <= await width_of(bubble)


async def test_code_never_ends_on_the_border_of_its_bubble(ana: Person, model: WireServer) -> None:
    """UI-05: a code block is as wide as the text, or extends to the edge of the page even if it needs less."""
    blocks = [f"```\n{'x' * letters}\n```" for letters in (20, 96, 99, 103, 130)]
    model.script(reply("Text\n\n" + "\n\n".join(blocks)))
    await ana.page.set_viewport_size({"width": 1700, "height": 900})
    await ana.say("Go")
    await expect(ana.answers.first.locator(".code")).to_have_count(5)
    await ana.sees_state("idle")
    wide = [await width_of(code) for code in await ana.answers.first.locator(".code").all()]
    assert wide[0] == wide[1] < wide[2] - 64
    assert wide[2:] == [wide[2]] * 3
    await ana.page.set_viewport_size({"width": 1250, "height": 900})
    assert [await width_of(code) for code in await ana.answers.first.locator(".code").all()] == wide[:1] * 5


async def width_of(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["width"]


async def test_calls_of_a_tool_fold_into_one_line(ana: Person, server: Server) -> None:
    """UI-01, UI-11: finished calls fold into one line, and only a failed call stays visible.

    The line unfolds the others, and so does a link to one of them.
    """
    await asyncio.to_thread(run_in, server, CALLS)
    await ana.page.reload()
    page, calls = ana.page, ana.page.locator("#messages article.tool_group > .column")
    line = page.get_by_role("button", name="read_file ×5")
    await expect(line).to_have_attribute("aria-expanded", "false")
    await expect(calls.filter(visible=True)).to_have_count(1)
    await expect(calls.filter(visible=True)).to_contain_text("part_2.py")
    assert await violations(page) == []
    await ana.answers.first.focus()
    for kind in ("tool_group cont run", "tool_group cont", "assistant cont"):
        await page.keyboard.press("j")
        await expect(page.locator(":focus")).to_have_class(f"message {kind}")
    await line.click()
    await expect(calls.filter(visible=True)).to_have_count(6)
    await line.click()
    await expect(calls.filter(visible=True)).to_have_count(1)
    hidden = await calls.nth(4).locator("..").get_attribute("id")
    await page.goto(f"{page.url}#{hidden}")
    await expect(page.locator(f"#{hidden}")).to_be_focused()
    await expect(calls.filter(visible=True)).to_have_count(6)
    ana.check_console()


async def test_times_appear_on_hover_and_focus(ana: Person, server: Server) -> None:
    """UI-02: the first message of a run shows its time.

    The others show theirs while the pointer or the focus is on them.
    """
    await asyncio.to_thread(run_in, server, CALLS)
    await ana.page.reload()
    first, last = ana.answers.first.locator(".clock"), ana.answers.last.locator(".clock")
    await expect(first).to_have_css("opacity", "1")
    await expect(last).to_have_css("opacity", "0")
    await ana.answers.last.hover()
    await expect(last).to_have_css("opacity", "1")


LONG = """
from chat.models import ChatMessage
ChatMessage.objects.filter(role="assistant").update(duration_ms=35_000)
"""


async def test_time_of_a_long_answer_keeps_its_place(ana: Person, server: Server, model: WireServer) -> None:
    """UI-02: the line with the time keeps its place when the duration is added."""
    gate = asyncio.Event()
    model.script(reply("First", gate=gate, rest=(" and last",)))
    await ana.say("Hi")
    await expect(ana.answers.first).to_contain_text("First")
    meta = ana.answers.first.locator(".meta")
    while_it_is_written = await meta.bounding_box()
    gate.set()
    await ana.sees_state("idle")
    await asyncio.to_thread(run_in, server, LONG)
    await ana.page.reload()
    await expect(meta).to_contain_text("✻ 35s · ")
    at_the_end = await meta.bounding_box()
    assert while_it_is_written is not None
    assert at_the_end is not None
    assert (at_the_end["x"], at_the_end["y"]) == (while_it_is_written["x"], while_it_is_written["y"])


async def test_letters_typed_on_the_list_go_into_the_composer(ana: Person, model: WireServer) -> None:
    """UI-09: letters that are typed at the message list go into the composer, and keys of the list still work."""
    model.script(reply("Hello"))
    await ana.say("Hi")
    await expect(ana.answers.first).to_contain_text("Hello")
    await ana.page.locator("#log").focus()
    await ana.page.keyboard.press("k")
    await expect(ana.answers.first).to_be_focused()
    await ana.page.locator("#log").focus()
    await ana.page.keyboard.type("Thanks")
    await expect(ana.composer).to_have_value("Thanks")


async def test_printed_page_has_full_dates(ana: Person, model: WireServer) -> None:
    """UI-11: on paper, "Today" is replaced by the whole date."""
    model.script(reply("Hello"))
    await ana.say("Hi")
    day = ana.page.locator("#messages > .day")
    await expect(day).to_have_text("Today")
    await ana.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    await expect(day).to_contain_text(str(datetime.now(tz=UTC).year))
    await ana.page.evaluate("dispatchEvent(new Event('afterprint'))")
    await expect(day).to_have_text("Today")
