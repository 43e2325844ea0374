"""The page's behavior in a real browser: scroll position, folding, drafts and unsent messages."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Browser, WebSocketRoute, expect

from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.support.server import Server, run_in
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

FILL = """
from chat.models import ChatMessage, Session, User
session, user = Session.objects.get(), User.objects.get()
rows = [
    ChatMessage(session=session, sequence=n, revision=n, role="user", sender="Admin", user=user,
                text=f"Number {n}\\n" * (n % 5 + 1))
    for n in range(1, 181)
]
ChatMessage.objects.bulk_create(rows)
Session.objects.update(revision=180)
"""


def fill(server: Server) -> None:
    """Add 180 messages of different heights to the only session."""
    run_in(server, FILL)


async def test_opened_tool_card_stays_open(ana: Person, model: WireServer) -> None:
    """An opened tool card stays open while text streams after it and when its message is replaced."""
    call = openai.sse(
        openai.role(),
        *openai.tool_call(0, "call_1", "calculator", '{"expression": "6*7"}'),
        openai.finish("tool_calls"),
        openai.usage(),
    )
    gate = asyncio.Event()
    model.script(Reply(call), reply("It is ", gate=gate, rest=("42.",)))
    await ana.say("What is six times seven?")
    await expect(ana.answers.first).to_contain_text("It is")
    card = ana.page.locator("article.tool_group details")
    await card.locator("summary").click()
    gate.set()
    await expect(ana.answers.first).to_contain_text("It is 42.")
    await ana.sees_state("idle")
    await expect(card).to_have_attribute("open", "")
    await expect(card).to_contain_text("6*7")


async def test_reasoning_is_open_while_it_streams_and_folds_when_done(ana: Person, model: WireServer) -> None:
    gate = asyncio.Event()
    begin = openai.sse(openai.role(), *openai.reasoning("Let me *think*."), done=False)
    end = openai.sse(*openai.text("Done."), openai.finish(), openai.usage())
    model.script(Reply([*begin, gate, *end]))
    await ana.say("Think")
    thought = ana.page.locator("article.reasoning details")
    await expect(thought.locator("em")).to_be_visible()
    gate.set()
    await expect(ana.answers.first).to_contain_text("Done.")
    await ana.sees_state("idle")
    await expect(thought.locator("em")).to_be_hidden()
    await expect(thought.locator("summary")).to_contain_text("Thought for")
    await thought.locator("summary").click()
    await expect(thought.locator("em")).to_be_visible()


@pytest.mark.both_browsers
async def test_scroll_position_stays_unless_at_the_end(ana: Person, model: WireServer) -> None:
    """At the end, the page follows the stream. Anywhere else it keeps its scroll position."""
    gate = asyncio.Event()
    lines = "".join(f"Line {number}\n\n" for number in range(80))
    model.script(reply(lines, gate=gate, rest=(lines, "The end.")))
    await ana.say("Write a lot")
    await expect(ana.page.get_by_text("Line 79")).to_be_in_viewport()
    await ana.page.mouse.move(600, 400)
    await ana.page.mouse.wheel(0, -900)
    latest = ana.page.get_by_role("button", name="Jump to latest")
    await expect(latest).to_be_visible()
    where = """async log => {
        let [before, still] = [NaN, 0];
        while ((still = log.scrollTop === before ? still + 1 : 0) < 5) {  // the wheel has come to rest
            before = log.scrollTop;
            await new Promise(requestAnimationFrame);
        }
        return before;
    }"""
    before = await ana.page.locator("#log").evaluate(where)
    gate.set()
    await ana.sees_state("idle")
    assert await ana.page.locator("#log").evaluate(where) == before
    await latest.click()
    await expect(ana.page.get_by_text("The end.")).to_be_in_viewport()
    await expect(latest).to_be_hidden()


@pytest.mark.both_browsers
async def test_older_messages_load_above_without_a_jump(ana: Person, server: Server) -> None:
    """Pages of 50 messages load as the reader scrolls up.

    What the reader sees does not move, and no message is missing or repeated.
    """
    await asyncio.to_thread(fill, server)
    await ana.page.reload()
    await expect(ana.page.get_by_text("Number 180").first).to_be_in_viewport()
    await expect(ana.messages).to_have_count(50)
    log = ana.page.locator("#log")
    await log.evaluate("log => log.scrollTop = 2500")  # so far down that the next page is not loaded automatically
    place = """async log => {
        for (let frame = 0; frame < 5; frame++) await new Promise(requestAnimationFrame);  // the layout has settled
        const edge = log.getBoundingClientRect().top;
        const first = window.first ??= [...log.querySelectorAll('article')].find(
            article => article.getBoundingClientRect().bottom > edge);
        return Math.round(first.getBoundingClientRect().top - edge);
    }"""
    before = await log.evaluate(place)
    await ana.page.get_by_role("button", name="Load older messages").evaluate("button => button.click()")
    await expect(ana.messages).to_have_count(100)
    assert abs(await log.evaluate(place) - before) <= 1
    for count in (150, 180):
        await expect(log).not_to_contain_class("holding")  # while it holds the position, the page undoes a scroll
        await log.evaluate("log => log.scrollTop = 0")
        await expect(ana.messages).to_have_count(count)
    numbers = await ana.messages.evaluate_all("all => all.map(one => Number(one.dataset.sequence))")
    assert numbers == list(range(1, 181))


async def test_unsent_message_survives_a_reload(ana: Person, model: WireServer) -> None:
    """LIVE-04, MSG-02: a message sent into a dead connection survives a reload and is delivered once."""
    model.script(reply("Got it"))
    dead: list[bool] = [True]

    async def cut(route: WebSocketRoute) -> None:
        if dead[0]:
            await route.close()
        else:
            route.connect_to_server()

    await ana.page.route_web_socket("**/ws/**", cut)
    await ana.page.reload()
    await ana.sees_connection("Reconnecting")
    await ana.say("Do not lose me")
    await expect(ana.queue).to_contain_text("Do not lose me")
    await ana.page.reload()
    await expect(ana.queue).to_contain_text("Do not lose me")
    dead[0] = False
    await expect(ana.messages.filter(has_text="Do not lose me")).to_have_count(1)
    await expect(ana.answers.first).to_contain_text("Got it")
    await expect(ana.queue).to_have_count(0)
    assert len(model.requests) == 1


@pytest.mark.both_browsers
async def test_draft_survives_a_reload(ana: Person) -> None:
    await ana.composer.fill("Half a thought")
    await ana.page.reload()
    await expect(ana.composer).to_have_value("Half a thought")


@pytest.mark.parametrize(("said_at", "shown"), [("Date.now()", "Half a thought"), ("Date.now() - 60_000", "")])
async def test_draft_is_newer_than_the_page(ana: Person, said_at: str, shown: str) -> None:
    """MSG-12: a draft that the server got while the page loaded is shown. An older one is replaced by the server's."""
    name = "() => Object.keys(localStorage).find(each => each.startsWith('parley:draft:'))"
    await ana.composer.fill("Half")
    await ana.page.wait_for_function(name)
    key = await ana.page.evaluate(name)
    await ana.composer.fill("")
    await ana.page.wait_for_function(f"() => !({name})()")  # the server has the empty draft, too
    await ana.page.add_init_script(f"""
        const kept = {{ text: "Half a thought", said: "Half a thought", at: 1, saidAt: {said_at} }};
        localStorage.setItem("{key}", JSON.stringify(kept));
    """)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(ana.composer).to_have_value(shown)


async def test_refused_message_returns_to_the_composer(ana: Person, server: Server) -> None:
    """MSG-12: the text of a rejected message is kept."""
    await ana.composer.fill("x\0y")
    await ana.composer.press("Enter")
    await expect(ana.page.get_by_role("alert")).to_contain_text("NUL")
    assert await ana.composer.input_value() == "x\0y"
    await ana.page.get_by_role("button", name="Dismiss").click()
    await expect(ana.page.get_by_role("alert")).to_be_empty()
    await ana.composer.press("Enter")
    await ana.page.get_by_role("button", name="Remove them").click()
    await expect(ana.composer).to_have_value("xy")
    await expect(ana.composer).to_be_focused()


@pytest.mark.both_browsers
async def test_enter_sends_but_not_during_a_composition(ana: Person, model: WireServer) -> None:
    """Enter sends, and Shift+Enter inserts a new line.

    An Enter that ends the composition of an input method does neither.
    """
    model.script(reply("Yes"))
    await ana.composer.fill("你好")
    await ana.composer.dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    await ana.composer.press("Shift+Enter")
    await ana.composer.press_sequentially("世界")
    assert await ana.composer.input_value() == "你好\n世界"
    await ana.composer.press("Enter")
    await expect(ana.messages.first.locator(".plain")).to_have_text("你好\n世界", use_inner_text=True)
    await expect(ana.composer).to_have_value("")


@pytest.mark.both_browsers
async def test_title_is_changed_by_keyboard_for_all_users(ana: Person, browser: Browser) -> None:
    """UI-11: Enter on the title edits it, Enter saves it, and Escape discards the change.

    Other pages show the new title.
    """
    state = await ana.page.context.storage_state()
    other = await (await browser.new_context(storage_state=state)).new_page()
    await other.goto(ana.page.url)
    await expect(other.locator("#connection")).to_have_text("Connected")
    await ana.page.bring_to_front()  # in Firefox, only the page in front has the focus
    await ana.page.wait_for_function("document.hasFocus()")
    title = ana.page.get_by_role("heading", level=1).get_by_role("button")
    field = ana.page.get_by_role("textbox", name="Title")
    for words, key in (("Not this", "Escape"), ("Release <4.2>", "Enter")):
        await title.press("Enter")
        await expect(field).to_be_focused()
        await field.fill(words)
        await field.press(key)
    await expect(other.get_by_role("heading", level=1)).to_contain_text("Release <4.2>")
    await expect(other).to_have_title("Release <4.2> · Parley")
    await expect(ana.page.get_by_role("navigation").get_by_role("link", name="Release <4.2>")).to_be_visible()


@pytest.mark.both_browsers
async def test_theme_is_switched_and_kept(ana: Person) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    await ana.page.emulate_media(color_scheme="light")
    light = await ana.page.evaluate(ground)
    async with ana.page.expect_response("**/settings/preferences"):
        await ana.choose_in_account_menu("Dark theme", "menuitemradio")
    dark = await ana.page.evaluate(ground)
    await ana.page.reload()
    assert (dark != light, await ana.page.evaluate(ground)) == (True, dark)


async def test_phone_has_a_drawer_and_no_sideways_scrolling(ana: Person, model: WireServer) -> None:
    """At a width of 360 px nothing scrolls sideways. A button opens the sessions, and Escape closes them."""
    wide = "| a | b | c | d | e | f | g | h |\n|-|-|-|-|-|-|-|-|\n|" + " a long cell |" * 8 + "\n\n`" + "x" * 200 + "`"
    model.script(reply(wide))
    await ana.page.set_viewport_size({"width": 360, "height": 640})
    await ana.say("y" * 300)
    await expect(ana.answers.first.locator("td")).to_have_count(8)
    await ana.sees_state("idle")
    assert await ana.page.evaluate("() => document.documentElement.scrollWidth") == 360
    assert await ana.page.locator("#log").evaluate("log => log.scrollWidth <= log.clientWidth")
    sidebar = ana.page.get_by_role("navigation", name="Sessions")
    await expect(sidebar).to_be_hidden()
    await ana.page.get_by_role("button", name="Open session list").click()
    await expect(sidebar.get_by_role("button", name="Close session list")).to_be_focused()
    await ana.page.keyboard.press("Escape")
    await expect(sidebar).to_be_hidden()
    await expect(ana.page.get_by_role("button", name="Open session list")).to_be_focused()


async def test_htmx_processes_only_its_own_elements(ana: Person) -> None:
    """UI-09: htmx processes only its own elements, because the browser would keep an object for each attribute."""
    note = "({ target }) => (window.processed ??= []).push(target.localName)"
    await ana.page.add_init_script(f"document.addEventListener('htmx:after:process', {note})")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await ana.page.get_by_role("button", name="Share").click()
    await ana.page.get_by_role("button", name="Create link").click()
    await expect(ana.page.get_by_label("Invitation link")).to_be_focused()
    assert "body" not in await ana.page.evaluate("window.processed")
