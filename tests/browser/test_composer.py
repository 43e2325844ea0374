"""The composer in a real browser: drafts on all devices, recalled messages, commands, mentions, and the queue."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from playwright.async_api import Browser, Locator, WebSocket, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_retry import PHONE
from tests.browser.test_uploads import NOTES, attach, chips
from tests.wire.server import WireServer


def suggestions(person: Person) -> Locator:
    return person.page.get_by_role("listbox", name="Suggestions").get_by_role("option")


async def beside(person: Person, browser: Browser, *, is_new_device: bool = False) -> Person:
    """Open the person's session again: in another tab, or on another device."""
    context = person.page.context
    if is_new_device:
        state = await context.storage_state()
        context = await browser.new_context(storage_state={**state, "origins": []})
    other = Person(await context.new_page())
    await other.page.goto(person.page.url)
    await other.sees_connection("Connected")
    return other


async def draft_saved(person: Person) -> asyncio.Event:
    """Reload the page. Return an event that is set when the server has confirmed a draft."""
    refs: set[str] = set()
    saved = asyncio.Event()

    def sent(frame: str | bytes) -> None:
        if (command := json.loads(frame))["type"] == "draft":
            refs.add(command["ref"])

    def received(frame: str | bytes) -> None:
        answer = json.loads(frame)
        if isinstance(answer, dict) and answer.get("ref") in refs:  # a short delta is a list
            saved.set()

    def watch(socket: WebSocket) -> None:
        socket.on("framesent", sent)
        socket.on("framereceived", received)

    person.page.on("websocket", watch)
    await person.page.reload()
    await person.sees_connection("Connected")
    return saved


async def busy(ana: Person, model: WireServer) -> asyncio.Event:
    """Start an answer that stays unfinished until the returned gate opens."""
    gate = asyncio.Event()
    model.script(reply("Busy", gate=gate), reply("Then this"), reply("And this"))
    await ana.say("First")
    await expect(ana.answers.first).to_contain_text("Busy")
    return gate


async def test_draft_follows_to_another_device(ana: Person, browser: Browser) -> None:
    """UI-09, MSG-12: another device shows the exact text of the draft.

    If both devices change it, the last change is kept.
    """
    draft = "\n Half a <thought> & \n\n“two”  "
    saved = await draft_saved(ana)
    await ana.composer.fill(draft)
    await saved.wait()
    phone = await beside(ana, browser, is_new_device=True)
    await expect(phone.composer).to_have_value(draft)
    saved = await draft_saved(phone)
    await phone.composer.fill("Better")
    await saved.wait()
    await ana.page.reload()
    await expect(ana.composer).to_have_value("Better")


async def test_sent_text_is_no_longer_a_draft(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-09: after sending, no device keeps the draft, even if it was still on its way. Text of other devices stays."""
    model.script(reply("Yes"), reply("Good"))
    saved = await draft_saved(ana)
    await ana.composer.fill("Is it")
    await saved.wait()
    phone = await beside(ana, browser, is_new_device=True)
    tablet = await beside(ana, browser, is_new_device=True)
    await tablet.composer.press_sequentially(" not?")
    await ana.composer.press_sequentially(" so?")
    await ana.composer.press("Enter")
    await expect(ana.messages.first).to_contain_text("Is it so?")
    await expect(phone.composer).to_have_value("")
    await expect(tablet.composer).to_have_value("Is it not?")
    await tablet.composer.fill("")
    await expect(phone.answers.first).to_contain_text("Yes")
    await phone.sees_state("idle")
    await phone.composer.press_sequentially("At once")  # the draft has its first letter, and the rest waits
    await phone.composer.press("Enter")
    await expect(phone.answers).to_have_count(2)
    new = await beside(ana, browser, is_new_device=True)
    await expect(new.composer).to_have_value("")


async def test_typed_text_survives_an_older_draft_from_another_tab(ana: Person, browser: Browser) -> None:
    """UI-09: a tab stores its draft again after the server's confirmation. It may be older than another tab's draft."""
    other = await beside(ana, browser)
    await ana.composer.fill("Written here")
    await expect(other.composer).to_have_value("Written here")
    name = "Object.keys(localStorage).find((name) => name.startsWith('parley:draft:'))"
    older = await ana.page.evaluate(f"localStorage[{name}]")
    await other.composer.press_sequentially(", and there")
    await expect(ana.composer).to_have_value("Written here, and there")
    await ana.page.evaluate(f"older => localStorage[{name}] = older", older)
    await ana.page.wait_for_function(f"() => localStorage[{name}].includes('and there')")
    await expect(other.composer).to_have_value("Written here, and there")


async def test_tab_without_own_text_follows_another_tab(ana: Person, browser: Browser) -> None:
    """UI-09: a tab without text of its own follows the other one; sending the message clears both."""
    other = await beside(ana, browser)
    await ana.composer.fill("Written here")
    await expect(other.composer).to_have_value("Written here")
    await other.composer.press_sequentially(", and there")
    await expect(ana.composer).to_have_value("Written here, and there")
    await ana.composer.press("Enter")
    await expect(other.composer).to_have_value("")


async def test_tab_continues_to_follow_another_tab(ana: Person, browser: Browser) -> None:
    """UI-09: a tab continues to follow another one, even if a storage event begins with older text than its field."""
    other = await beside(ana, browser)
    await other.composer.fill("Written")
    await expect(ana.composer).to_have_value("Written")
    # The other tab writes once more when the server has the draft.
    await ana.page.wait_for_function(
        """() => Object.entries(localStorage).some(
            ([key, value]) => key.startsWith("parley:draft:") && JSON.parse(value).said === "Written"
        )"""
    )
    await ana.page.evaluate(
        """() => {
            const key = Object.keys(localStorage).find((each) => each.startsWith("parley:draft:"));
            const draft = (text) => JSON.stringify({ text, said: "", at: Date.now(), saidAt: 0 });
            const change = { key, oldValue: draft("Writ"), newValue: draft("Written there") };
            dispatchEvent(new StorageEvent("storage", change));
        }"""
    )
    await expect(ana.composer).to_have_value("Written there")
    await ana.composer.press("!")
    await expect(other.composer).to_have_value("Written there!")


async def test_arrow_up_recalls_sent_messages(ana: Person, model: WireServer) -> None:
    """UI-09: Arrow Up goes to the newest message first, and Arrow Down back to the empty field.

    Text that is being written is left alone.
    """
    model.script(reply("A"), reply("B"))
    for number, text in enumerate(("One", "Two\nlines")):
        await ana.say(text)
        await expect(ana.answers).to_have_count(number + 1)
        await ana.sees_state("idle")
    await ana.page.reload()
    for key, text in (("Up", "Two\nlines"), ("Up", "One"), ("Up", "One"), ("Down", "Two\nlines"), ("Down", "")):
        await ana.composer.press(f"Arrow{key}")
        await expect(ana.composer).to_have_value(text)
    await ana.composer.fill("Mine")
    await ana.composer.press("ArrowUp")
    await expect(ana.composer).to_have_value("Mine")


async def test_escape_in_an_empty_composer_stops(ana: Person, model: WireServer) -> None:
    """RUN-07, UI-09: Escape stops only in an empty composer, whose placeholder says what sending does now."""
    await expect(ana.composer).to_have_attribute("placeholder", "Message assistant…")
    await busy(ana, model)
    await expect(ana.composer).to_have_attribute("placeholder", "Send a follow-up (it will be queued)…")
    await ana.composer.fill("Wait")
    await ana.composer.press("Escape")
    await ana.composer.fill("")
    await ana.sees_state("thinking")
    await ana.composer.press("Escape")
    await ana.sees_state("idle")
    await expect(ana.page.get_by_text("Stopped by Admin", exact=True)).to_be_visible()
    await expect(ana.composer).to_be_focused()


async def test_ctrl_enter_sends_if_it_is_chosen(ana: Person, model: WireServer) -> None:
    """UI-09: if the user has chosen Ctrl+Enter for sending, Enter inserts a new line."""
    model.script(reply("Yes"))
    await ana.page.evaluate("document.documentElement.dataset.sendKey = 'ctrl_enter'")
    await expect(ana.page.get_by_text("Ctrl+Enter to send · Enter for a new line")).to_be_visible()
    await ana.composer.press_sequentially("One")
    await ana.composer.press("Enter")
    await ana.composer.press_sequentially("two")
    await expect(ana.composer).to_have_value("One\ntwo")
    await ana.composer.press("Control+Enter")
    await expect(ana.messages.first.locator(".plain")).to_have_text("One\ntwo", use_inner_text=True)


async def test_hint_about_keys_disappears_with_the_tenth_message(ana: Person, model: WireServer) -> None:
    """UI-09: the hint about the keys disappears with the tenth message, and stays away after a reload."""
    model.script(reply("Fine"))
    hint = ana.page.get_by_text("Enter to send · Shift+Enter for a new line")
    await expect(hint).to_be_visible()
    await ana.page.evaluate("localStorage.setItem('parley:sent-count', '9')")
    await ana.say("The tenth")
    await expect(hint).to_be_hidden()
    await expect(ana.answers.first).to_contain_text("Fine")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(hint).to_be_hidden()


async def test_withdrawn_message_returns_to_the_composer(ana: Person, model: WireServer) -> None:
    """RUN-06: the text returns unless the composer has other text; Undo then adds the message above it."""
    gate = await busy(ana, model)
    await ana.say("Second thoughts")
    await ana.queue.first.get_by_role("button", name="Remove").click()
    await expect(ana.composer).to_have_value("Second thoughts")
    await expect(ana.composer).to_be_focused()
    await expect(ana.queue).to_have_count(0)
    await ana.composer.press("Enter")
    await ana.composer.fill("In the way")
    await ana.queue.first.get_by_role("button", name="Remove").click()
    await expect(ana.queue).to_have_count(0)
    await expect(ana.composer).to_have_value("In the way")
    await ana.page.get_by_role("button", name="Undo").click()
    await expect(ana.composer).to_have_value("Second thoughts\n\nIn the way")
    gate.set()


async def test_edit_of_a_removed_message_is_not_offered_any_more(ana: Person, model: WireServer) -> None:
    """RUN-06: when a queued message is removed, the offer to keep editing it disappears."""
    gate = await busy(ana, model)
    await ana.say("Later")
    await ana.queue.get_by_role("button", name="Edit").click()
    field = ana.page.get_by_role("textbox", name="Queued message")
    middle = "each => { const { top, bottom } = each.getBoundingClientRect(); return (top + bottom) / 2 }"
    save = ana.queue.get_by_role("button", name="Save")
    assert abs(await field.evaluate(middle) - await save.evaluate(middle)) < 1
    await field.fill("Much later")
    await ana.page.keyboard.press("Escape")
    await expect(ana.page.get_by_role("button", name="Keep editing")).to_be_visible()
    await ana.queue.get_by_role("button", name="Remove").click()
    await expect(ana.queue).to_have_count(0)
    await expect(ana.page.get_by_role("button", name="Keep editing")).to_have_count(0)
    gate.set()


async def test_withdrawn_message_returns_its_files(ana: Person, model: WireServer) -> None:
    """RUN-06: the files of a withdrawn message are attached again, ready to be sent."""
    gate = await busy(ana, model)
    await attach(ana, NOTES)
    await expect(chips(ana).first).to_have_attribute("data-state", "ready")
    await ana.say("Read this")
    await ana.queue.first.get_by_role("button", name="Remove").click()
    await expect(chips(ana).locator(".chip-name")).to_have_text(["notes <1>.txt"])
    await expect(ana.composer).to_have_value("Read this")
    await ana.page.reload()
    await expect(chips(ana)).to_have_count(1)
    await ana.composer.press("Enter")
    gate.set()
    await expect(ana.messages.filter(has_text="Read this")).to_contain_text("notes <1>.txt")


async def test_many_queued_messages_are_folded_and_seen_by_all(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """RUN-06: queued messages are in order, and users can edit their own ones.

    Three or more are folded to the next message and a count.
    """
    bo = await invited(ana, browser, "Bo")
    gate = await busy(ana, model)
    for number, person in enumerate((ana, bo, ana)):
        await person.say(f"Queued {number}")
        await expect(ana.queue).to_have_count(number + 1)
    await expect(bo.queue).to_have_count(3)
    for person in (ana, bo):
        shown = person.queue.locator(".queued-text:visible")
        await expect(shown).to_have_text(["Queued 0"])
        await person.page.get_by_role("button", name="3 messages are queued").press("Enter")
        await expect(shown).to_have_text(["Queued 0", "Queued 1", "Queued 2"])
    await expect(bo.queue.nth(0)).to_have_accessible_name("Queued by Admin")
    await expect(bo.queue.get_by_role("button", name="Edit")).to_have_count(1)
    gate.set()
    await expect(bo.queue).to_have_count(0)
    await expect(ana.messages.filter(has_text="Queued")).to_have_count(3)
    bo.check_console()


@pytest.mark.both_browsers
async def test_slash_lists_and_runs_commands(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-11: commands are found by a few letters, chosen by key, and announced to screen readers.

    Nothing of them is sent.
    """
    await ana.composer.press_sequentially("/")
    await expect(suggestions(ana).filter(has_text="/rename")).to_be_visible()
    await ana.composer.press("Enter")  # nothing is selected yet
    await expect(ana.composer).to_have_value("/")
    await ana.composer.press_sequentially("ren")
    await expect(suggestions(ana).first).to_contain_text("/rename")
    active = await ana.composer.get_attribute("aria-activedescendant")
    assert active == await suggestions(ana).first.get_attribute("id")
    await ana.composer.press("Tab")
    await expect(ana.composer).to_have_value("/rename ")
    await ana.composer.press_sequentially("Plan B")
    await ana.composer.press("Enter")
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Plan B")
    await expect(ana.composer).to_have_value("")
    await ana.composer.press_sequentially("/model sm")
    await expect(suggestions(ana)).to_have_count(1)
    await ana.composer.press("Enter")
    await expect(ana.page.locator("[data-part=model]").first).to_contain_text("wire-small")
    await ana.say("/model none-such")
    await expect(ana.page.get_by_role("alert")).to_contain_text("No model is called none-such")
    await expect(ana.composer).to_have_value("/model none-such")
    await ana.say("/stop ")
    await expect(ana.page.get_by_role("alert")).to_contain_text("/stop isn’t possible right now")
    await expect(ana.messages).to_have_count(0)
    assert not model.requests


async def test_text_that_looks_like_a_command_is_sent(ana: Person, model: WireServer) -> None:
    """MSG-12: a text that begins like a command is sent exactly as written.

    So is the name of a command without arguments with a text after it. A second slash sends a text that would be a
    command.
    """
    same = ("/usr/bin/python is missing", "// so?", "/retry but only three lines", "/new idea: chairs by the metre?")
    texts = {**{text: text for text in same}, "//stop": "/stop"}
    model.script(*(reply("Yes") for _text in texts))
    for number, (written, sent) in enumerate(texts.items()):
        await ana.composer.press_sequentially(written)
        await ana.composer.press("Escape")
        await ana.composer.press("Enter")
        await expect(ana.answers).to_have_count(number + 1)
        assert model.requests[-1].body["messages"][-1]["content"] == sent
        await ana.sees_state("idle")


async def test_people_are_mentioned_by_name(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-09: "@" completes the users in the session; only the mentioned user sees the mention marked."""
    bo = await invited(ana, browser, "Bo")
    model.script(reply("Hi"))
    await ana.page.keyboard.press("Escape")
    await ana.composer.press_sequentially("Ask @bo")
    await expect(suggestions(ana)).to_have_text(["BOBobo"])
    await ana.composer.press("Escape")
    await expect(suggestions(ana)).to_have_count(0)
    await ana.composer.press("Backspace")
    await suggestions(ana).first.click()
    await expect(ana.composer).to_have_value("Ask @Bo ")
    await ana.composer.press_sequentially("please")
    await ana.composer.press("Enter")
    await expect(bo.messages.filter(has_text="Ask @Bo please")).to_have_class(re.compile("calls-me"))
    await expect(bo.messages.first.locator(".mention.is-me")).to_have_text("@Bo")
    await expect(ana.messages.first).not_to_contain_class("calls-me")
    await expect(ana.messages.first.locator(".mention:not(.is-me)")).to_have_text("@Bo")
    bo.check_console()


async def test_typing_is_reported_once_per_interval(ana: Person) -> None:
    """LIVE-05: the page reports typing once for several keys, and does not report typing of a command."""
    await ana.page.evaluate("window.reported = 0; document.addEventListener('parley:typing', () => reported += 1)")
    await ana.composer.press_sequentially("/stop")
    assert await ana.page.evaluate("reported") == 0
    await ana.composer.fill("")
    await ana.composer.press_sequentially("Hello there")
    assert await ana.page.evaluate("reported") == 1


async def test_archived_session_can_be_read_and_restored(ana: Person, browser: Browser) -> None:
    """UI-09: all users see immediately that the session is archived, and by whom. Drafts stay until it is restored."""
    bo = await invited(ana, browser, "Bo")
    await ana.page.keyboard.press("Escape")
    await bo.composer.press_sequentially("Half a thought")
    await expect(ana.page.locator("#typing > span").last).to_be_visible()
    await ana.say("/archive")
    await expect(ana.composer).to_be_hidden()
    await expect(ana.page.locator(".toast")).to_contain_text("Archived for 2 people")
    await expect(ana.page.locator("#typing > span").last).to_be_hidden()
    banner, words = (
        bo.page.locator(".read-only.archived"),
        "Admin archived this session. Your draft is kept. Its owner can",
    )
    await expect(banner).to_contain_text(words)
    await expect(bo.page.locator("#announcer")).to_contain_text(words)
    await bo.page.reload()
    await expect(banner).to_contain_text(words)
    await ana.page.get_by_role("button", name="Restore").press("Enter")
    await expect(ana.composer).to_be_focused()
    await expect(bo.composer).to_have_value("Half a thought")
    bo.check_console()


async def test_agent_is_stopped_in_an_archived_session(ana: Person, model: WireServer) -> None:
    """RUN-07, UI-09: an agent goes on in an archived session, so the banner has Stop until it ends."""
    model.script(reply("A long ", gate=asyncio.Event()))
    await ana.say("Write")
    await expect(ana.answers.last).to_contain_text("A long")
    await ana.composer.fill("/archive")
    await ana.composer.press("Enter")
    await expect(ana.composer).to_be_hidden()
    await ana.stop.press("Enter")
    await expect(ana.answers.last).to_have_attribute("data-status", "interrupted")
    await expect(ana.page.locator("#main")).to_be_focused()
    await expect(ana.stop).to_have_count(0)
    await expect(ana.page.get_by_role("button", name="Restore", exact=True)).to_be_visible()


RECOGNITION = """
window.SpeechRecognition = class {
    start() { window.heard = this; }
    stop() { this.onend(); }
    abort() {}
};
window.hear = (...said) => window.heard.onresult({
    resultIndex: 0,
    results: said.map(([transcript, isFinal]) => Object.assign([{ transcript }], { isFinal })),
});
"""


async def test_message_can_be_dictated(ana: Person) -> None:
    """UI-09: if the browser recognizes speech, a button inserts its final results at the caret."""
    await ana.page.add_init_script(RECOGNITION)
    await ana.page.reload()
    await ana.composer.fill("Please")
    button = ana.page.get_by_role("button", name="Dictate")
    await button.click()
    await expect(button).to_have_attribute("aria-pressed", "true")
    await ana.page.evaluate("hear(['tell', true], ['tell me mo', false])")
    await expect(ana.composer).to_have_value("Please tell")
    await ana.page.evaluate("hear(['tell', true], ['me more', true])")
    await expect(ana.composer).to_have_value("Please tell me more")
    await ana.page.evaluate("hear(['tell', true], ['me more', true], ['1', true], ['12', true], ['12', true])")
    await expect(ana.composer).to_have_value("Please tell me more 1 12 12")
    await ana.page.evaluate("heard.onerror({ error: 'not-allowed' })")
    await expect(ana.page.get_by_text("doesn’t let this page use the microphone")).to_be_visible()
    await button.click()
    await expect(button).to_have_attribute("aria-pressed", "false")
    await expect(ana.composer).to_be_focused()
    ana.check_console()


async def test_repeated_results_are_dictated_once(ana: Person) -> None:
    """UI-09: Chrome for Android reports each partial result as final, and earlier results again."""
    await ana.page.add_init_script(RECOGNITION)
    await ana.page.add_init_script("Object.defineProperty(navigator, 'userAgent', { value: 'Android' })")
    await ana.page.reload()
    await ana.page.get_by_role("button", name="Dictate").click()
    await expect(ana.page.get_by_role("button", name="Dictate")).to_have_attribute("aria-pressed", "true")
    said = ["order", "order the", "Order the chairs", "for", "for Mon", "for Monday"]
    for number in range(1, len(said) + 1):
        for _time in range(2):
            await ana.page.evaluate("said => hear(...said)", [[text, True] for text in said[:number]])
    await expect(ana.composer).to_have_value("order the chairs for Monday")
    await ana.page.evaluate("hear(['order the chairs', true])")
    await expect(ana.composer).to_have_value("order the chairs for Monday")
    ana.check_console()


async def test_stop_and_send_share_a_line_on_a_phone(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-07, UI-09: a phone shows Stop and Send side by side, although the agent answers only mentions."""
    await ana.page.get_by_role("button", name="More", exact=True).first.click()
    await ana.page.get_by_role("menuitem", name="Agent behavior").click()
    await ana.page.get_by_role("menuitemradio", name="Answer only @mentions").click()
    gate = asyncio.Event()
    model.script(reply("Slowly", gate=gate))
    await ana.say("@agent Hello")
    await expect(ana.answers.first).to_contain_text("Slowly")
    state = await ana.page.context.storage_state()
    context = await browser.new_context(storage_state=state, viewport=PHONE, has_touch=True, is_mobile=True)
    phone = await context.new_page()
    await phone.goto(ana.page.url)
    await phone.get_by_role("textbox", name="Message", exact=True).fill("And then?")
    boxes = [
        await phone.get_by_role("button", name=name, exact=True).bounding_box()
        for name in ("Attach files", "Stop", "Send")
    ]
    tops = [box["y"] for box in boxes if box and box["width"] >= 44 and box["height"] >= 44]
    assert len(tops) == 3, boxes
    assert max(tops) - min(tops) < 10, tops
    await context.close()
    gate.set()
    await ana.sees_state("idle")
