"""The content of messages for readers: code, formulas, tables, images, reasoning, tools and terminals."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.browser.gallery import Showcase, visit
from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.wire.server import WireServer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CHART = "![A chart](https://pictures.example/a.png)"
LONG_LINE = "```python\nx = '" + "long " * 80 + "'\n```"
FORMULA = "Energy $E=mc^2$, then\n\n$$\n\\frac{a}{b}\n$$\n\nand $5 or $6."
TABLE = "|" + "column |" * 20 + "\n|" + "---|" * 20 + "\n|" + "somewords |" * 20


# Paragraphs in two scripts, a list that begins with code, a table, and content that is always read from left to right.
ARABIC = """مرحبا، شغّل `npm install` أولا.

English again.

- `ls` يعرض الملفات
- ثانيا

| الاسم | English |
|---|---|
| قيمة | value |

```python
print("مرحبا")
```

$$
a+b
$$

"""
PARTS = "p, td, li, pre"
# Returns the edge of its box at which the text of an element begins.
EDGE = """element => {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let [left, right] = [Infinity, -Infinity];
  while (texts.nextNode()) {
    range.selectNodeContents(texts.currentNode);
    const text = range.getBoundingClientRect();
    if (text.width) [left, right] = [Math.min(left, text.left), Math.max(right, text.right)];
  }
  const box = element.getBoundingClientRect();
  return left - box.left < box.right - right ? "left" : "right";
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def reader(ana: Person, model: WireServer) -> Person:
    """Ana, after an answer with all kinds of content."""
    model.script(reply("\n\n".join((LONG_LINE, FORMULA, TABLE, CHART))))
    await ana.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await ana.say("Show me")
    await expect(ana.answers).to_contain_text("A chart")
    await ana.sees_state("idle")
    return ana


async def test_each_part_of_an_answer_has_its_own_direction(ana: Person, model: WireServer) -> None:
    """MSG-10, LIVE-01: in an answer that begins in Arabic, code, formulas and English keep their direction.

    This also holds while it streams.
    """
    gate = asyncio.Event()
    model.script(reply(ARABIC, gate=gate, rest=("End.",)))
    await ana.say("Go")
    body = ana.answers.first.locator("[data-body]")
    await expect(body.locator("math")).to_be_visible()
    for _look in ("while it is written", "afterwards", "after a reload"):
        edges = [await part.evaluate(EDGE) for part in await body.locator(PARTS).all()]
        assert edges[:7] == ["right", "left", "right", "right", "right", "left", "left"]
        ltr = body.locator(".code, .code-head, pre, code, math, .formula")
        assert set(await ltr.evaluate_all("all => all.map(each => getComputedStyle(each).direction)")) == {"ltr"}
        assert await body.locator("ul").evaluate("list => getComputedStyle(list).direction") == "rtl"
        if not gate.is_set():
            gate.set()
            await ana.sees_state("idle")
        else:
            await ana.page.reload()
            await ana.sees_connection("Connected")


async def test_copying_code_is_announced(reader: Person) -> None:
    """UI-11, UI-13: copying code marks its button and is announced."""
    button = reader.answers.get_by_role("button", name="Copy", exact=True)
    await button.click()
    await expect(button).to_have_class("copy copied")
    await expect(reader.page.locator("#announcer")).to_contain_text("Copied")
    copied: str = await reader.page.evaluate("navigator.clipboard.readText()")
    assert copied == LONG_LINE.removeprefix("```python\n").removesuffix("```")


async def test_choice_of_line_wrapping_is_kept(reader: Person) -> None:
    """UI-11: wrapping applies to all code, and after a reload. The button names its action."""
    code = reader.answers.locator(".code pre")
    overflows = "pre => pre.scrollWidth > pre.clientWidth"
    assert await code.evaluate(overflows)
    await reader.answers.get_by_role("button", name="Wrap long lines").click()
    await expect(reader.answers.get_by_role("button", name="Don’t wrap lines")).to_be_visible()
    assert not await code.evaluate(overflows)
    await reader.page.reload()
    await expect(reader.answers.get_by_role("button", name="Don’t wrap lines")).to_be_visible()
    assert not await code.evaluate(overflows)
    await reader.answers.get_by_role("button", name="Don’t wrap lines").click()
    await expect(reader.answers.get_by_role("button", name="Wrap long lines")).to_be_visible()
    assert await code.evaluate(overflows)


async def test_formulas_are_the_same_live_and_after_a_reload(reader: Person) -> None:
    """UI-01, LIVE-01: the browser lays formulas out as MathML, in the stream and after a reload; prices are text."""
    formulas = reader.answers.locator("math")
    await expect(formulas).to_have_count(2)
    # A block that is too expensive for a frame is rendered by another process. Until then it is shown as source.
    await expect(reader.answers.locator(".code pre span").first).to_be_visible()
    namespaces = "all => all.map(math => math.querySelector('mi, mfrac').namespaceURI)"
    live, bodies = await formulas.evaluate_all(namespaces), await reader.bodies()
    assert live == ["http://www.w3.org/1998/Math/MathML"] * 2
    await expect(reader.answers).to_contain_text("and $5 or $6.")
    await reader.page.reload()
    assert await reader.bodies() == bodies


async def test_wide_table_scrolls_within_its_bubble_by_keyboard(reader: Person) -> None:
    """UI-01: a wide table can take the focus and scrolls, and the page does not become wider."""
    table = reader.answers.get_by_role("group", name="Table")
    await table.focus()
    await reader.page.keyboard.press("End")
    await reader.page.keyboard.press("ArrowRight")
    await expect(table).to_be_focused()
    assert await table.evaluate("table => table.scrollWidth > table.clientWidth")
    assert await reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_keyboard_stops_only_at_what_scrolls(reader: Person) -> None:
    """UI-11: the keyboard skips a formula that fits, and stops at tables and code that scroll."""
    await reader.answers.locator("a").first.focus()
    # The page measures only elements that the browser has drawn.
    await reader.page.wait_for_function(
        "document.querySelector('#messages .formula').checkVisibility({ contentVisibilityAuto: true })"
    )
    await reader.page.keyboard.press("Shift+Tab")
    await expect(reader.answers.locator(".formula")).to_have_attribute("tabindex", "-1")
    await expect(reader.answers.locator(".table-wrap")).to_have_attribute("tabindex", "0")
    await expect(reader.answers.locator(".code pre")).to_have_attribute("tabindex", "0")


async def test_tool_cards_open_copy_and_color(browser: Browser, showcase: Showcase) -> None:
    """UI-10: calls are lines that open; JSON is laid out in colors; a terminal is copied as plain text."""
    page = await visit(browser, showcase)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(showcase.session)
    cards = page.locator("article.tool_group")
    await expect(page.locator("#connection")).to_contain_text("Connected")
    while not await page.get_by_text("pytest -q").count():
        before = await page.locator("#messages article").count()
        await page.locator("#log").evaluate("log => (log.scrollTop = 0)")
        await expect(page.locator("#messages article")).not_to_have_count(before)
    await page.get_by_role("button", name="read_file ×").last.click()
    card = cards.filter(has_text="step_39.py").first
    await card.locator("summary").click()
    await expect(card.locator(".hl .nt").first).to_have_text('"path"')
    copy = card.get_by_role("button", name="Copy", exact=True).first
    await copy.click()
    await expect(copy).to_contain_class("copied")
    assert json.loads(await page.evaluate("navigator.clipboard.readText()"))["path"].endswith("step_39.py")
    terminal = cards.filter(has=page.locator(".terminal")).filter(has_text="pytest")
    await expect(terminal.locator(".fg2").first).to_contain_text("....")
    copy = terminal.get_by_role("button", name="Copy", exact=True).last
    await copy.click()
    await expect(copy).to_contain_class("copied")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("$ pytest -q\n...............F....   [100%]\nFAILED ")


async def test_external_image_is_loaded_on_request(reader: Person) -> None:
    """UI-01: an external image loads on request, through Parley. If that fails, the page says so, and can try again."""
    asked: list[str] = []

    async def answer(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(body=PNG if len(asked) > 1 else b"", content_type="image/png")

    await reader.page.route("**/image?*", answer)
    button = reader.answers.get_by_role("button", name="A chart")
    await button.click()
    await expect(reader.page.get_by_text("Couldn’t load this image.")).to_be_visible()
    assert len(asked) == 1
    await button.click()
    await expect(reader.answers.get_by_role("img", name="A chart")).to_be_visible()
    assert "address=https%3A%2F%2Fpictures.example%2Fa.png&signature=" in asked[-1]


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        (f"{CHART}\n\nRemember these words.\n\nAnd ", ("more.\n\n" * 30, "The end.")),
        (f"Look:\n\n- {CHART}\n- Remember these words.\n- And ", ("more.\n\nThe ", "end.")),
    ],
    ids=["finished-blocks", "unfinished-list"],
)
async def test_selection_and_loaded_image_survive_streaming(
    ana: Person, model: WireServer, start: str, rest: tuple[str, ...]
) -> None:
    """UI-01, LIVE-01: selected text and a loaded image survive what streams after them, and the end of their list."""
    gate = asyncio.Event()
    model.script(reply(start, gate=gate, rest=rest))
    await ana.page.route("**/image?*", lambda route: route.fulfill(body=PNG, content_type="image/png"))
    await ana.say("Go")
    await ana.answers.get_by_role("button", name="A chart").click()
    picture = ana.answers.get_by_role("img", name="A chart")
    await expect(picture).to_be_visible()
    await ana.answers.get_by_text("Remember these words.").evaluate("each => getSelection().selectAllChildren(each)")
    gate.set()
    await expect(ana.answers).to_contain_text("The end.")
    await ana.sees_state("idle")
    await expect(picture).to_be_visible()
    assert await ana.page.evaluate("getSelection().toString()") == "Remember these words."


async def test_unfinished_code_keeps_focus_and_position_when_it_is_finished(ana: Person, model: WireServer) -> None:
    """UI-11, LIVE-01: code that a user has scrolled, and its focused button, stay as they are when the code ends."""
    gate = asyncio.Event()
    model.script(reply("Run:\n\n", LONG_LINE.removesuffix("```"), gate=gate, rest=("```\n\nThe ", "end.")))
    await ana.say("Go")
    copy = ana.answers.get_by_role("button", name="Copy", exact=True)
    await copy.focus()
    await ana.answers.locator(".code pre").evaluate("code => (code.scrollLeft = 100)")
    gate.set()
    await expect(ana.answers).to_contain_text("The end.")
    await ana.sees_state("idle")
    await expect(copy).to_be_focused()
    assert await ana.answers.locator(".code pre").evaluate("code => code.scrollLeft") == 100
