"""The main flow without a mouse. There is always a focused element, and the focus is visible."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Browser, Locator, expect
from playwright.async_api import TimeoutError as TooLate

from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.browser.test_palette import search
from tests.support.server import Server, run_in
from tests.wire import openai
from tests.wire.server import WireServer

FARTHEST = 80
PASSWORD = "a long enough passphrase"
BO = f"from chat.models import User; User.objects.create_user('bo', password='{PASSWORD}', display_name='Bo')"
FOCUS = """() => {
    const active = document.activeElement;
    const box = active.getBoundingClientRect();
    const isSeen = box.width > 0 && box.bottom > 0 && box.top < innerHeight && active.matches(":focus-visible");
    return active === document.body ? "nowhere" : isSeen ? "" : active.outerHTML.slice(0, 200);
}"""


async def keeps_focus(person: Person) -> None:
    """Check that the focused element is in view and matches :focus-visible."""
    for _frame in range(2):  # the browser moves the focus off a removed element when it draws the page
        await person.page.evaluate("() => new Promise(requestAnimationFrame)")
    try:
        await person.page.wait_for_function(f"() => !({FOCUS})()")  # Alpine restores it a moment later
    except TooLate:
        assert await person.page.evaluate(FOCUS) == ""


async def press(person: Person, *keys: str) -> None:
    for key in keys:
        await person.page.keyboard.press(key)
    await keeps_focus(person)


async def reach(person: Person, goal: Locator, key: str = "Tab") -> None:
    """Move the focus to an element by pressing a single key, by default Tab."""
    await expect(goal).to_be_visible()
    for _step in range(FARTHEST):
        if await goal.evaluate("element => element === document.activeElement"):
            return await keeps_focus(person)
        await person.page.keyboard.press(key)
    raise AssertionError(f"{goal} cannot be reached by {key}")


async def test_main_flow_works_by_keyboard(ana: Person, model: WireServer) -> None:
    """UI-09, UI-11, RUN-06, RUN-07, RUN-10: a user writes, stops, retries, queues, withdraws and edits by keyboard."""
    page = ana.page
    gate = asyncio.Event()
    model.script(
        reply("So far", gate=asyncio.Event()),
        openai.error(401, "Incorrect API key provided"),
        reply("Busy", gate=gate),
        reply("The end"),
    )
    await expect(ana.composer).to_be_focused()
    await page.keyboard.type("Hello")
    await press(ana, "Enter")
    await expect(ana.answers.first).to_contain_text("So far")
    await reach(ana, ana.stop)
    await press(ana, "Enter")
    await ana.sees_state("idle")
    await keeps_focus(ana)
    await expect(ana.composer).to_be_focused()

    await page.keyboard.type("And now?")
    await press(ana, "Enter")
    problem = page.locator("article.error")
    await expect(problem).to_be_visible()
    await ana.sees_state("idle")
    await reach(ana, problem.get_by_role("button", name="Retry", exact=True), "Shift+Tab")
    await press(ana, "Enter")
    await expect(problem).to_have_count(0)
    await expect(ana.answers.nth(1)).to_contain_text("Busy")
    await press(ana, "Shift+Escape")
    await expect(ana.composer).to_be_focused()

    for words in ("Sekond", "Not this"):
        await page.keyboard.type(words)
        await press(ana, "Enter")
    await expect(ana.queue).to_have_count(2)
    await reach(ana, ana.queue.nth(1).get_by_role("button", name="Remove"), "Shift+Tab")
    await press(ana, "Enter")
    await expect(ana.queue).to_have_count(1)
    await expect(ana.composer).to_be_focused()
    await press(ana, "Control+a", "Delete")
    await reach(ana, ana.queue.first.get_by_role("button", name="Edit"), "Shift+Tab")
    await press(ana, "Enter")
    await expect(ana.queue.first.get_by_role("textbox")).to_be_focused()
    await press(ana, "Control+a")
    await page.keyboard.type("Second")
    await press(ana, "Enter")
    await expect(ana.queue.first).to_contain_text("Second")
    await expect(ana.queue.first.get_by_role("button", name="Edit")).to_be_focused()
    gate.set()
    await expect(ana.answers.nth(2)).to_contain_text("The end")
    await ana.sees_state("idle")
    await keeps_focus(ana)


async def test_session_is_set_up_by_keyboard(ana: Person) -> None:
    """UI-11: model, title, sharing and the list of shortcuts work by keyboard. Escape returns to the previous focus."""
    page = ana.page
    picker = page.get_by_role("button", name=re.compile("^Model:"))
    await reach(ana, picker, "Shift+Tab")
    await press(ana, "Enter")
    await expect(page.get_by_role("listbox", name="Models")).to_be_focused()
    await press(ana, "ArrowDown", "Enter")
    await expect(page.locator("[data-part=model]").first).to_contain_text("wire-small")
    await expect(picker).to_be_focused()

    title = page.get_by_role("heading", level=1).get_by_role("button")
    await reach(ana, title, "Shift+Tab")
    await press(ana, "Enter")
    await page.keyboard.type("Plan B")
    await press(ana, "Enter")
    await expect(title).to_contain_text("Plan B")

    share = page.get_by_role("button", name="Share")
    await reach(ana, share, "Tab")
    await press(ana, "Enter")
    await expect(page.get_by_role("dialog").get_by_role("button", name="Create link")).to_be_visible()
    await keeps_focus(ana)
    await press(ana, "Escape")
    await expect(share).to_be_focused()

    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    await page.keyboard.type("why?")
    await expect(keys).to_have_count(0)
    await page.keyboard.press("Control+/")
    await expect(keys).to_contain_text("Stop the agent")
    await expect(keys).to_contain_text("Shift+Esc")
    await press(ana, "Escape")
    await expect(share).to_be_focused()
    await press(ana, "Shift+Escape")
    await expect(ana.composer).to_be_focused()
    await press(ana, "Control+/")
    await expect(keys).to_be_visible()
    await press(ana, "Escape")
    await expect(ana.composer).to_be_focused()


async def test_home_works_by_keyboard(browser: Browser, server: Server) -> None:
    """UI-09, UI-11, UI-13: sign-in, themes, settings, palette and list of shortcuts work by keyboard."""
    await asyncio.to_thread(run_in, server, BO)
    bo = await Person.enter(browser, f"{server.address}/accounts/sign-in/")
    page = bo.page
    look = page.locator("html")
    await reach(bo, page.get_by_label("User name"))
    await page.keyboard.type("bo")
    await press(bo, "Tab")
    await expect(page.get_by_label("Password")).to_be_focused()
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press("Enter")
    field = page.get_by_role("textbox", name="First message")
    await expect(field).to_be_focused()
    await keeps_focus(bo)

    account = page.get_by_role("button", name="Account:")
    await reach(bo, account, "Shift+Tab")
    await press(bo, "Enter")
    await page.keyboard.type("light")
    await expect(page.get_by_role("menuitemradio", name="Light theme")).to_be_focused()
    await press(bo, "Enter")
    await expect(look).to_have_attribute("data-theme", "light")
    await press(bo, "Control+/")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(keys).to_contain_text("Ctrl+Shift+O")
    await press(bo, "Escape")
    await expect(account).to_be_focused()
    await press(bo, "Shift+Escape")
    await expect(field).to_be_focused()

    chosen = page.get_by_role("dialog", name="Search").get_by_role("option", selected=True)
    await search(bo, "dark theme")
    await expect(chosen).to_contain_text("Dark theme")
    await press(bo, "Enter")
    await expect(look).to_have_attribute("data-theme", "dark")
    await expect(field).to_be_focused()
    await search(bo, "settings")
    await expect(chosen).to_contain_text("Settings")
    await page.keyboard.press("Enter")
    await reach(bo, page.locator("[name=theme]:checked"))
    await expect(page.locator("[name=theme]:checked")).to_have_value("dark")
    await press(bo, "ArrowUp")
    await expect(look).to_have_attribute("data-theme", "light")
    await reach(bo, page.get_by_role("link", name="Back to your sessions"), "Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(field).to_be_focused()
    await expect(look).to_have_attribute("data-theme", "light")
    await page.keyboard.press("Control+Shift+o")
    await expect(field).to_be_focused()
    bo.check_console()


async def test_macs_show_the_keys_that_work_there(ana: Person) -> None:
    """UI-11: on a Mac, all texts of the page name ⌘, which takes the place of Ctrl there."""
    page = ana.page
    await page.add_init_script("Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' })")
    await page.reload()
    await ana.sees_connection("Connected")
    sidebar = page.get_by_role("navigation", name="Sessions")
    await expect(sidebar.locator("[data-action=search] kbd")).to_have_text("⌘K")
    titles = await sidebar.locator("[title*='⌘']").evaluate_all("buttons => buttons.map(({ title }) => title)")
    assert titles == ["Show or hide the session list (⌘B)", "New session (⌘Shift+O)", "Search (⌘K)"]
    await page.keyboard.press("Meta+k")
    await expect(page.locator("#palette .palette-foot")).to_contain_text("⌘↵ new tab")
