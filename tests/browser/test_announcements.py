"""What screen readers announce: texts that are added to live regions of the page."""

from __future__ import annotations

import asyncio

from playwright.async_api import Browser, Page, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_history import button, history, key
from tests.browser.test_messages import talk
from tests.support.server import Server
from tests.wire.server import WireServer

# Records each text that the announcer gets, and the dialog in which the announcer is then.
HEAR = """() => {
  window.heard = [];
  const announcer = document.getElementById("announcer");
  const note = () => heard.push([announcer.textContent, announcer.closest("dialog")?.id ?? ""]);
  new MutationObserver(note).observe(announcer, { childList: true });
}"""
# Records what is added to live regions.
HEAR_ALL = """() => {
  window.heard = [];
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes)
      if (addedNodes.length && target.closest("[aria-live], [role=status], [role=alert]"))
        heard.push([...addedNodes].map((node) => node.textContent.trim()).join(""));
  }).observe(document.body, { childList: true, subtree: true });
}"""
# Records the order in which the region of the toasts is moved into a dialog, and gets a toast.
WATCH_TOASTS = """() => {
  window.steps = [];
  new MutationObserver((changes) => {
    const added = changes.flatMap(({ addedNodes }) => [...addedNodes]);
    steps.push(...added.filter((node) => node.id === "toasts").map(() => "region"));
    steps.push(...added.filter((node) => node.matches?.(".toast")).map(() => "toast"));
    steps.push("end of task");
  }).observe(document.body, { childList: true, subtree: true });
}"""


async def heard(page: Page, *parts: str) -> list[tuple[str, str]]:
    """Return the recorded announcements when each part has been announced."""
    condition = "parts => parts.every(part => heard.some(([text]) => text.includes(part)))"
    await page.wait_for_function(condition, arg=list(parts))
    return [(text, place) for text, place in await page.evaluate("heard")]


async def test_message_that_starts_a_turn_is_announced(ana: Person, model: WireServer, browser: Browser) -> None:
    """LIVE-01, RUN-01: another user’s message is announced, and that the agent is thinking, at the same moment."""
    bo = await invited(ana, browser, "Bo")
    await ana.page.evaluate(HEAR)
    model.script(reply("Four"))
    await bo.say("What is two and two?")
    await heard(ana.page, "Bo: What is two and two?", "is thinking", "Four")
    bo.check_console()


async def test_markers_and_notes_are_announced_by_their_text(ana: Person, model: WireServer) -> None:
    """RUN-07, UI-04: how a turn ended, and a note, have no author. The button beside a marker is not announced."""
    model.script(reply("So far", gate=asyncio.Event()), reply(" and on"))
    await ana.page.evaluate(HEAR)
    await ana.say("Talk")
    await expect(ana.answers.first).to_contain_text("So far")
    await ana.stop.click()
    await heard(ana.page, "Stopped by Admin")
    await ana.page.locator(".marker").get_by_role("button", name="Continue").click()
    announced = [text for text, _place in await heard(ana.page, "Admin let the agent continue.", "and on")]
    lines = [line for text in announced for line in text.split("\n")]
    assert {"Stopped by Admin", "Admin let the agent continue."} <= set(lines)
    assert "Continue" not in lines
    assert not any("null" in line for line in lines)


async def test_repeated_text_is_announced_again(ana: Person, model: WireServer) -> None:
    """UI-11: a second copy is announced, too: its text differs from the first by a space."""
    await talk(ana, model, "```python\nprint(1)\n```")
    await expect(ana.page.locator("#announcer")).to_contain_text("print(1)")
    await ana.page.evaluate(HEAR)
    copy = ana.answers.get_by_role("button", name="Copy", exact=True)
    for _time in range(3):
        texts = len(await ana.page.evaluate("heard"))
        await copy.click()
        await ana.page.wait_for_function("texts => heard.length > texts", arg=texts)
    assert [text for text, _place in await heard(ana.page)] == ["Copied", "Copied\xa0", "Copied"]


async def test_dialog_contains_what_is_announced(ana: Person, model: WireServer) -> None:
    """UI-11: while a modal dialog is open, the rest of the page is inert, so the announcer is in the dialog."""
    gate = asyncio.Event()
    model.script(reply("An", gate=gate, rest=(" answer",)), reply("Another"))
    await ana.say("Begin")
    await expect(ana.answers.first).to_contain_text("An")
    await button(ana, "Share").click()
    await expect(ana.page.get_by_role("button", name="Create link")).to_be_visible()
    await ana.page.evaluate(HEAR)
    gate.set()
    assert [place for text, place in await heard(ana.page, "An answer") if "An answer" in text] == ["share"]
    await ana.page.keyboard.press("Escape")
    await ana.say("More")
    assert [place for text, place in await heard(ana.page, "Another") if "Another" in text] == [""]


async def test_toast_is_added_after_its_region_is_in_the_dialog(ana: Person, model: WireServer) -> None:
    """UI-11: screen readers do not announce the first text of a region that is new to them."""
    await talk(ana, model, "First", "Second")
    await key(ana.answers.last, "Delete")
    await expect(ana.answers).to_have_count(1)
    await ana.page.locator(".toast-close").click()
    await button(ana, "More").click()
    await ana.page.get_by_role("menuitem", name="Removed messages").click()
    await ana.page.evaluate(WATCH_TOASTS)
    await history(ana, "Removed messages").get_by_role("button", name="Restore").click()
    await expect(ana.page.locator("dialog #toasts")).to_contain_text("Message restored")
    steps: list[str] = await ana.page.evaluate("steps")
    assert "end of task" in steps[steps.index("region") : steps.index("toast")]


async def test_share_dialog_announces_results_only(ana: Person, browser: Browser) -> None:
    """UI-11: a change in the dialog is announced by its result, and not by everything that the dialog contains."""
    bo = await invited(ana, browser, "Bo")
    page = ana.page
    await button(ana, "Share").click()
    dialog = page.get_by_role("dialog", name="Share session")
    await expect(dialog.get_by_label("Role of Bo")).to_have_value("editor")
    await page.evaluate(HEAR_ALL)
    async with page.expect_response("**/share/member"):
        await dialog.get_by_label("Role of Bo").select_option("viewer")
    await expect(bo.composer).to_have_count(0)
    await dialog.get_by_role("button", name="Create link").click()
    await expect(dialog.get_by_label("Invitation link")).to_be_visible()
    await dialog.get_by_role("button", name="Revoke").first.click()
    await page.wait_for_function("() => heard.includes('This link no longer works.')")
    await dialog.get_by_role("button", name="Remove Bo").click()
    await page.get_by_role("dialog", name="Remove Bo?").get_by_role("button", name="Remove").click()
    await page.wait_for_function("() => heard.includes('1 person in this session')")
    assert max(len(text) for text in await page.evaluate("heard")) < 40
    bo.check_console()


async def test_toast_of_a_reloaded_page_is_announced(ana: Person, server: Server) -> None:
    """UI-13: a toast that the server renders with the page is added again when screen readers announce changes."""
    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.add_init_script("""addEventListener("DOMContentLoaded", () => {
        window.heard = [];
        const note = (changes) => heard.push(...changes.map(({ addedNodes }) => addedNodes[0]?.innerText ?? ""));
        new MutationObserver(note).observe(document.getElementById("toasts"), { childList: true });
    })""")
    await ana.page.get_by_label("Your name").fill("Ana")
    await ana.page.keyboard.press("Enter")
    await expect(ana.page.locator("#toasts")).to_contain_text("Name saved.")
    await ana.page.wait_for_function("() => window.heard?.some(text => text.includes('Name saved.'))")
    await ana.page.get_by_role("button", name="Dismiss").click()
    await expect(ana.page.locator(".toast")).to_have_count(0)


async def test_retries_do_not_repeat_that_the_page_is_offline(ana: Person) -> None:
    """LIVE-02: the connection's state is written only if it has changed, however often the page tries to connect."""
    await ana.page.clock.install()
    await ana.page.evaluate("""() => {
        window.heard = [];
        const connection = document.getElementById("connection");
        new MutationObserver(() => heard.push(connection.textContent)).observe(connection, { childList: true });
    }""")
    await ana.page.context.set_offline(True)
    await ana.sees_connection("You’re offline")
    await ana.page.clock.run_for(60_000)
    assert len(await ana.page.evaluate("heard")) == 1
    await ana.page.context.set_offline(False)
    await ana.sees_connection("Connected")
    ana.reports.clear()
    assert len(await ana.page.evaluate("heard")) == 2
