"""Actions on the content of an answer: footnotes, alerts, files, tables, diagrams and previews."""

from __future__ import annotations

import asyncio
import re

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.person import WINDOW, Person
from tests.browser.test_accessibility import RULES, violations
from tests.browser.test_chat import reply
from tests.support.server import Server
from tests.wire.server import WireServer

NOTES = "Fast[^1], and cheap[^b].\n\nFast[^1] again.\n\n> [!WARNING]\n> Mind the gap.\n\n[^1]: Very.\n[^b]: Quite."
TABLE = '| Name | Said |\n|---|--:|\n| Ana, B. | "hi" |\n| **c**<br>d | $10^{3}$ |'
CODE = "```python\nprint(1)\n```"
DIAGRAM = "```mermaid\ngraph TD\n  A[Start] --> B[End]\n```"
BROKEN = "```mermaid\ngraph TD\n  A --> --> B\n```"
PAGE = """```html
<!doctype html>
<style>h1 { color: rgb(1, 2, 3) }</style>
<h1>Hello</h1>
<button>Press</button>
<script>document.querySelector("button").onclick = (event) => (event.target.textContent = "Pressed")</script>
```"""
SVG = '```svg\n<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><circle r="9"/></svg>\n```'


# Returns whether the toolbar of a message covers no buttons of its code.
APART = """message => {
  const bar = message.querySelector(":scope > .message-actions").getBoundingClientRect();
  return [...message.querySelectorAll(".code-head > button")].map((each) => each.getBoundingClientRect())
    .every(({ left, right, top, bottom }) =>
      right <= bar.left || left >= bar.right || bottom <= bar.top || top >= bar.bottom);
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def reader(ana: Person, model: WireServer) -> Person:
    """Ana, after an answer with all contents of this file."""
    model.script(reply("\n\n".join((NOTES, TABLE, CODE, DIAGRAM, BROKEN, PAGE, SVG))))
    await ana.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await ana.say("Show me")
    await expect(ana.answers.get_by_role("button", name="Preview")).to_have_count(2)
    await ana.sees_state("idle")
    return ana


async def test_bare_address_in_an_answer_is_a_link(ana: Person, model: WireServer) -> None:
    """An address without a scheme is a link, too. The full stop after it does not belong to the link."""
    model.script(reply("See https://example.org/a?b=1, or www.example.org."))
    await ana.say("Go")
    await ana.sees_state("idle")
    links = ana.answers.first.get_by_role("link")
    await expect(links).to_have_text(["https://example.org/a?b=1", "www.example.org"])
    await expect(links.first).to_have_attribute("href", "https://example.org/a?b=1")
    await expect(links.first).to_have_attribute("rel", re.compile("noopener"))


async def test_footnotes_lead_to_the_note_and_back(reader: Person) -> None:
    """UI-01: a reference leads to its note, and the note back to the reference that the reader came from."""
    references = reader.answers.locator(".footnote-ref")
    assert await references.all_text_contents() == ["1", "2", "1"]
    await references.nth(2).click()
    note = reader.answers.locator(".footnote-back").first
    await expect(note).to_be_focused()
    await expect(note).to_have_accessible_description("Back to the text")
    await reader.page.keyboard.press("Enter")
    await expect(references.nth(2)).to_be_focused()
    await reader.answers.locator(".footnote-back").nth(1).click()
    await expect(references.nth(1)).to_be_focused()


async def test_alert_shows_its_kind(reader: Person) -> None:
    """UI-13: the kind of an alert is visible, and is its name for screen readers."""
    alert = reader.answers.get_by_role("group", name="Warning")
    await expect(alert).to_contain_text("Mind the gap.")
    shown = await alert.evaluate("alert => getComputedStyle(alert, '::before').content")
    assert shown.startswith('"Warning"')


async def test_table_is_copied_as_csv(reader: Person) -> None:
    """UI-11: the copied table has its cells as text, formulas as LaTeX, and quotation marks where CSV needs them."""
    button = reader.answers.get_by_role("button", name="Copy as CSV")
    await button.click()
    copied = 'Name,Said\n"Ana, B.","""hi"""\n"c\nd",10^{3}\n'
    await reader.page.wait_for_function(
        "text => navigator.clipboard.readText().then((now) => now === text)", arg=copied
    )


async def test_toolbar_covers_no_buttons_of_a_long_block(ana: Person, model: WireServer) -> None:
    """UI-11: the toolbar and the buttons of a long block are both visible without overlap, also while it is written."""
    gate = asyncio.Event()
    code = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(90))
    model.script(reply(code, gate=gate, rest=("```\nEnd.",)))
    await ana.say("Go")
    answer = ana.answers.first
    await expect(answer).to_contain_text("line_89")
    await answer.locator("pre").hover(position={"x": 40, "y": 1500})
    bar = answer.get_by_role("group", name="Message actions")
    copy = answer.get_by_role("button", name="Copy", exact=True)
    for _look in ("while it is written", "afterwards"):
        await expect(bar).to_be_in_viewport(ratio=1)
        await expect(copy).to_be_in_viewport(ratio=1)
        await ana.page.wait_for_function(APART, arg=await answer.element_handle())
        if not gate.is_set():
            gate.set()
            await ana.sees_state("idle")
            await ana.page.mouse.wheel(0, -400)
            await expect(ana.page.get_by_role("button", name="Jump to latest")).to_be_visible()
            await answer.locator("pre").hover(position={"x": 50, "y": 1200})


async def test_code_is_downloaded_under_the_name_of_its_language(reader: Person) -> None:
    """UI-11: the file has the code as it was written."""
    block = reader.answers.locator(".code", has_text="print(1)")
    async with reader.page.expect_download() as coming:
        await block.get_by_role("button", name="Download").click()
    download = await coming.value
    assert download.suggested_filename == "snippet.py"
    assert (await download.path()).read_text() == "print(1)\n"


async def test_diagram_is_drawn_in_the_theme_of_the_page(reader: Person) -> None:
    """UI-11: a diagram is drawn in the page's theme and follows it. Buttons switch between the diagram and its code."""
    block = reader.answers.locator(".code", has_text="Start")
    await block.scroll_into_view_if_needed()
    frame = block.locator("iframe")
    await expect(frame).to_be_visible()
    drawn = frame.content_frame
    await expect(drawn.locator("svg")).to_contain_text("Start")
    await expect(drawn.locator("html")).to_have_css("color-scheme", "light")
    await reader.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    await expect(drawn.locator("html")).to_have_css("color-scheme", "dark")
    await expect(block.locator("pre")).to_be_hidden()
    # By key: a diagram that has just been drawn again can move the button under a mouse.
    await block.get_by_role("button", name="Code").press("Enter")
    await expect(block.locator("pre")).to_be_visible()
    await expect(frame).to_be_hidden()
    await block.get_by_role("button", name="Diagram").press("Enter")
    await expect(frame).to_be_visible()


async def test_diagram_with_a_mistake_shows_code_and_error(reader: Person) -> None:
    """UI-11: a diagram with a mistake shows its code and the error."""
    block = reader.answers.locator(".code", has_text="A --> -->")
    await block.scroll_into_view_if_needed()
    await expect(block.locator(".diagram-error")).to_have_text("Couldn’t draw this diagram: Parse error on line 2")
    await expect(block.locator("pre")).to_be_visible()
    await expect(block.locator("iframe")).to_have_count(0)
    await expect(block.get_by_role("button", name="Diagram")).to_be_hidden()


async def test_preview_runs_the_page_and_restores_the_focus(reader: Person) -> None:
    """UI-11: scripts of the page run in the preview. Escape and its button close it and restore the focus."""
    button = reader.answers.get_by_role("button", name="Preview").first
    side = reader.page.get_by_role("complementary", name="Preview")
    await button.click()
    inside = side.locator("iframe").content_frame
    await expect(inside.get_by_role("heading")).to_have_css("color", "rgb(1, 2, 3)")
    await inside.get_by_role("button").click()
    await expect(inside.get_by_role("button")).to_have_text("Pressed")
    await reader.page.keyboard.press("Escape")
    await expect(side).to_be_hidden()
    await expect(button).to_be_focused()
    await reader.answers.get_by_role("button", name="Preview").nth(1).press("Enter")
    await expect(side.locator("iframe").content_frame.locator("circle")).to_be_visible()
    await side.get_by_role("button", name="Close").click()
    await expect(reader.answers.get_by_role("button", name="Preview").nth(1)).to_be_focused()


@pytest.mark.parametrize("touch", [False, True])
async def test_copy_button_of_a_table_appears_on_hover_and_focus(
    browser: Browser, server: Server, model: WireServer, touch: bool
) -> None:
    """UI-11: the button is hidden until it gets the focus. On a touch screen it is always visible and covers no cell.

    On paper the button is hidden, the line of the day is shown, and messages of other users are black on white.
    """
    model.script(reply(TABLE))
    person = await Person.in_a_session(browser, server.link)
    context = await browser.new_context(**WINDOW, has_touch=touch, is_mobile=touch)
    await context.add_cookies(await person.page.context.cookies())  # type: ignore[arg-type]  # what it returns
    page = await context.new_page()
    await page.goto(person.page.url)
    await person.say("A table")
    await expect(page.locator("#messages article.assistant")).to_have_attribute("data-status", "complete")
    button = page.get_by_role("button", name="Copy as CSV")
    await expect(button).to_have_css("opacity", "1" if touch else "0")
    await button.focus()
    await expect(button).to_have_css("opacity", "1")
    below = "button => button.getBoundingClientRect().bottom <= button.nextElementSibling.getBoundingClientRect().top"
    assert await button.evaluate(below) is touch
    await page.emulate_media(media="print")
    await expect(button).to_be_hidden()
    await expect(page.locator(".day")).to_have_css("display", "flex")
    await expect(page.locator(".day > button")).to_be_visible()
    await page.locator("article.mine").evaluate("message => message.classList.remove('mine')")
    await expect(page.locator("article.user .bubble")).to_have_css("background-color", "rgb(255, 255, 255)")


async def test_wide_content_is_not_cut_off_on_paper(ana: Person, model: WireServer) -> None:
    """UI-01: on paper, where nothing scrolls, wide tables shrink, and no table or formula hides a part of itself."""
    row = "|" + "|".join(f"{number},234,567" for number in range(1, 11)) + "|\n"
    table = row + "|" + "-|" * 10 + "\n" + row
    sum_ = " + ".join(f"a_{{{number}}}x^{{{number}}}" for number in range(40))
    model.script(reply(f"{table}\n$$\n{sum_}\n$$\n\nHere, ${sum_}$"))
    await ana.say("Show me")
    await expect(ana.answers.locator(".formula")).to_have_count(1)
    await ana.page.set_viewport_size({"width": 688, "height": 900})  # A4 without its margins
    await ana.page.emulate_media(media="print")
    hidden = """answer => [...answer.querySelectorAll(".prose *")]
      .filter((each) => each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX !== "visible")
      .map((each) => each.className || each.tagName)"""
    assert await ana.answers.first.evaluate(hidden) == []
    assert await ana.answers.locator(".table-wrap").evaluate("table => table.scrollWidth <= table.clientWidth")


async def test_columns_of_a_formula_end_together(ana: Person, model: WireServer) -> None:
    """UI-01: the left sides of aligned equations end at the same place, although browsers align cells differently."""
    model.script(reply("$$\n\\begin{aligned} a &= b \\\\ a+b+c &= d \\end{aligned}\n$$"))
    await ana.say("Show me")
    cells = ana.answers.locator("mtd.right > :last-child")
    await expect(cells).to_have_count(2)
    ends = await cells.evaluate_all("all => all.map(each => Math.round(each.getBoundingClientRect().right))")
    assert len({*ends}) == 1


async def test_dark_diagram_is_light_on_paper(reader: Person) -> None:
    """UI-11: on paper, a diagram of the dark theme has dark text, because browsers leave out its ground."""
    await reader.answers.locator(".code", has_text="Start").scroll_into_view_if_needed()
    drawn = reader.answers.locator("iframe.diagram[data-drawn]").content_frame
    svg = drawn.locator("svg").first
    await expect(svg).to_have_css("filter", "none")
    await reader.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    await expect(drawn.locator("html")).to_have_css("color-scheme", "dark")
    await reader.page.emulate_media(media="print")
    await expect(drawn.locator("html")).to_have_css("color-scheme", "light")
    await expect(svg).to_have_css("filter", "invert(1) hue-rotate(180deg)")
    await reader.page.emulate_media(media="screen")
    await expect(svg).to_have_css("filter", "none")


async def test_wide_code_stays_within_the_bubble(ana: Person, model: WireServer) -> None:
    """UI-01: a code block does not end on the bubble's border, but has as much space around it as the text."""
    model.script(reply("Text\n\n```\n" + "x" * 110 + "\n```\n\n```\n" + "x" * 400 + "\n```\n"))
    await ana.page.set_viewport_size({"width": 1280, "height": 800})
    await ana.say("Code")
    await expect(ana.answers.first.locator(".code")).to_have_count(2)
    await ana.sees_state("idle")
    beside = """answer => {
        const end = answer.querySelector('.bubble').getBoundingClientRect().right;
        return [...answer.querySelectorAll('.code')].map(code => Math.round(end - code.getBoundingClientRect().right));
    }"""
    assert await ana.answers.first.evaluate(beside) == [15, 15]
    assert await ana.page.locator("#log").evaluate("log => log.scrollWidth <= log.clientWidth")


async def test_content_is_accessible(reader: Person) -> None:
    """UI-01, UI-11: names, contrast and target sizes, in both themes, with a diagram, its code and a preview."""
    await reader.answers.locator(".code", has_text="Start").scroll_into_view_if_needed()
    await expect(reader.answers.locator("iframe.diagram[data-drawn]")).to_be_visible()
    await expect(reader.answers.locator(".diagram-error")).to_be_visible()
    rules = RULES | {"iframes": False}  # they have another origin
    assert await violations(reader.page, rules) == []
    await reader.answers.get_by_role("button", name="Preview").first.click()
    await reader.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    await expect(reader.page.get_by_role("complementary", name="Preview")).to_be_visible()
    assert await violations(reader.page, rules) == []
