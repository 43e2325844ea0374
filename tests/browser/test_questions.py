"""UI-12: questions of an agent on the page, answered by one person and seen by another."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, ViewportSize, WebSocketRoute, expect

from agents.messages import Json
from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, let_look_only, reply
from tests.browser.test_messages import UNCOVERED
from tests.browser.test_notifications import BROWSER
from tests.browser.test_retry import PHONE
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire import openai
from tests.wire.script import Reply
from tests.wire.server import WireServer

TOOLS = """
tools = ["form", "selection", "confirmation", "plan_review", "feedback", "action_selection", "calculator", "web_fetch"]
[agents.assistant.approval]
ask = ["calculator", "web_fetch"]
"""
CHOICES = [{"id": "a", "label": "Apples", "description": "Red ones"}, {"id": "b", "label": "Pears"}]
SELECTION = ("selection", {"question": "Which fruit?", "multiple": True, "choices": CHOICES})
CONFIRMATION = ("confirmation", {"question": "Delete the table?", "confirm": "Delete it", "danger": True})
PLAN = ("plan_review", {"title": "The plan", "plan": "1. Do **this**"})
FEEDBACK = ("feedback", {"question": "What do you think?", "items": CHOICES})
ACTIONS = ("action_selection", {"question": "What next?", "actions": CHOICES})
FIELDS = [
    {"id": "name", "label": "Name", "required": True, "help": "As on the invoice"},
    {"id": "why", "label": "Why", "type": "long_text"},
    {"id": "many", "label": "How many", "type": "number"},
    {"id": "day", "label": "Day", "type": "date"},
    {"id": "sure", "label": "Sure?", "type": "yes_no", "required": True},
    {"id": "size", "label": "Size", "type": "choice", "options": ["S", "M"]},
    {"id": "teams", "label": "Teams", "type": "choices", "options": ["Red", "Blue"]},
]
FORM = ("form", {"title": "A few things", "fields": FIELDS, "submit": "Book"})
SUM = ("calculator", {"expression": "6*7"})


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent has all kinds of questions, and a tool that needs an approval."""
    async with servers.use(CONFIG + TOOLS, LEASE_SECONDS="2") as server:
        yield server


def asking(*calls: tuple[str, Json]) -> Reply:
    """Return a reply of the model with these tool calls."""
    chunks = [
        chunk
        for number, (name, arguments) in enumerate(calls)
        for chunk in openai.tool_call(number, f"call_{number}", name, json.dumps(arguments))
    ]
    return Reply(openai.sse(openai.role(), *chunks, openai.finish("tool_calls"), openai.usage()))


def results(model: WireServer) -> list[object]:
    """Return the results of the tools in the model's last request; texts that are no JSON as they are."""
    contents = [each["content"] for each in model.requests[-1].body["messages"] if each["role"] == "tool"]
    return [json.loads(text) if text[:2] in ('["', '{"', '"a') else text for text in contents]


def card(person: Person, title: str) -> Locator:
    return person.page.get_by_role("group", name=title)


async def press(question: Locator, name: str) -> None:
    """Press a button wherever it is: cards move when others are answered, and a click at a place could miss it."""
    await question.get_by_role("button", name=name).evaluate("button => button.click()")


async def asked(person: Person, model: WireServer, *calls: tuple[str, Json], then: str = "Done") -> None:
    """Let the agent ask, and wait until it waits."""
    model.script(asking(*calls), reply(then))
    await person.say("Go")
    await person.sees_state("waiting")


@pytest.mark.any_browser
async def test_every_kind_is_answered_and_others_see_it_at_once(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """Each answer is read-only at once on the other page. After the last one the turn goes on."""
    bo = await invited(ana, browser, "Bo")
    await asked(ana, model, SELECTION, CONFIRMATION, PLAN, FEEDBACK, ACTIONS, FORM)
    await expect(ana.page.locator("#announcer")).to_contain_text("wire-large asks: Which fruit?")
    assert await violations(ana.page) == []

    choice = card(ana, "Which fruit?")
    await choice.get_by_role("checkbox", name="Pears").check()
    await press(choice, "Send answer")
    await expect(card(bo, "Which fruit?")).to_contain_text(re.compile(r"Pears.*Admin answered, \d\d:\d\d", re.S))
    await expect(card(bo, "Which fruit?").get_by_role("checkbox")).to_have_count(0)
    await press(card(bo, "Delete the table?"), "No")
    await expect(card(ana, "Delete the table?")).to_contain_text(re.compile("No.*Bo answered", re.S))

    plan = card(ana, "The plan").first
    await expect(plan.locator("strong")).to_have_text("this")
    await press(plan, "Edit")
    await plan.get_by_label("Plan (Markdown)").fill("1. Do that")
    await press(plan, "Approve with changes")
    await expect(card(bo, "The plan")).to_contain_text("Approved with changes")
    feedback = card(bo, "What do you think?")
    await feedback.get_by_label("Pears").fill("Too soft")
    await feedback.get_by_label("Pears").press("Control+Enter")
    await expect(card(ana, "What do you think?")).to_contain_text(re.compile("Pears.*Too soft", re.S))
    await press(card(ana, "What next?"), "Apples")
    await expect(card(bo, "What next?")).to_contain_text(re.compile("Apples.*Admin answered", re.S))

    form = card(bo, "A few things")
    await form.get_by_label("Name").fill("Bo & Co")
    await form.get_by_label("How many").fill("2.5")
    await form.get_by_label("Day").fill("2026-11-30")
    await form.get_by_role("radio", name="No").check()
    await form.get_by_label("Size").select_option("M")
    await form.get_by_role("checkbox", name="Blue").check()
    await press(form, "Book")
    await expect(ana.answers.last).to_contain_text("Done")
    for text in ("Bo & Co", "2.5", "2026-11-30", "No", "M", "Blue"):
        await expect(card(ana, "A few things")).to_contain_text(text)
    assert results(model) == [
        ["b"],
        {"confirmed": False},
        {"decision": "edit", "plan": "1. Do that"},
        {"b": "Too soft"},
        "a",
        {"name": "Bo & Co", "many": 2.5, "day": "2026-11-30", "sure": False, "size": "M", "teams": ["Blue"]},
    ]
    await bo.sees_state("idle")
    before = await bo.page.locator(".question").all_inner_texts()
    await bo.page.reload()
    assert await bo.page.locator(".question").all_inner_texts() == before
    assert await violations(bo.page) == []
    bo.complain()


@pytest.mark.parametrize("at_end", [True, False])
async def test_question_that_is_aimed_at_does_not_move_when_another_is_answered(
    ana: Person, model: WireServer, browser: Browser, at_end: bool
) -> None:
    """A click reaches its button while another user answers a question above, at the end of the list and elsewhere."""
    bo = await invited(ana, browser, "Bo")
    last = [] if at_end else [FORM]
    await asked(ana, model, PLAN, SELECTION, CONFIRMATION, *last)
    question = card(ana, "Delete the table?")
    await question.evaluate("card => card.scrollIntoView({ block: 'end' })")
    button = question.get_by_role("button", name="No")
    await button.hover()
    await ana.page.mouse.down()
    await press(card(bo, "The plan"), "Approve")
    await expect(card(ana, "The plan")).to_contain_text("Bo answered")
    await card(bo, "Which fruit?").get_by_role("checkbox", name="Pears").check()
    await press(card(bo, "Which fruit?"), "Send answer")
    await expect(card(ana, "Which fruit?")).to_contain_text("Bo answered")
    await ana.page.mouse.up()
    await expect(card(ana, "Delete the table?")).to_contain_text("Admin answered")
    if not at_end:
        await ana.stop.click()
    await ana.sees_state("idle")


async def test_refused_answer_and_draft_stay(ana: Person, model: WireServer, browser: Browser) -> None:
    """The card says at the field what is wrong. What was entered survives that, a reload, and other answers."""
    await asked(ana, model, FORM, SELECTION)
    form = card(ana, "A few things")
    await form.get_by_label("Why").fill("Because")
    await form.get_by_role("button", name="Book").click()
    await expect(form.get_by_role("alert")).to_have_text("“Name” is required.")
    name = form.get_by_label("Name")
    await expect(name).to_be_focused()
    await expect(name).to_have_accessible_description("“Name” is required. As on the invoice")
    await name.fill("Ana")
    await form.get_by_role("button", name="Book").click()
    await expect(form.get_by_role("alert")).to_have_text("“Sure?” is required.")
    await card(ana, "Which fruit?").get_by_role("checkbox", name="Apples").check()
    await form.get_by_role("checkbox", name="Red").check()
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(name).to_have_value("Ana")
    await expect(form.get_by_label("Why")).to_have_value("Because")
    await expect(form.get_by_role("checkbox", name="Red")).to_be_checked()
    await card(ana, "Which fruit?").get_by_role("button", name="Send answer").click()
    await expect(card(ana, "Which fruit?").get_by_role("button")).to_have_count(0)
    await expect(name).to_have_value("Ana")
    await form.get_by_role("radio", name="Yes").check()
    await form.get_by_role("radio", name="Yes").press("Enter")
    await expect(ana.answers.last).to_contain_text("Done")
    stored = "Object.keys(localStorage).filter((name) => name.startsWith('parley:answer:'))"
    assert await ana.page.evaluate(stored) == []


async def test_who_is_late_sees_the_answer_of_the_first(ana: Person, model: WireServer, browser: Browser) -> None:
    """A page that has not heard of the answer yet: its own is refused, and the card becomes the first one's."""
    bo = await invited(ana, browser, "Bo")
    held: list[str | bytes] = []
    holding = False

    async def lead(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        server.on_message(
            lambda frame: held.append(frame) if holding and '"message"' in str(frame)[:40] else route.send(frame)
        )

    await ana.page.route_web_socket("**/ws/**", lead)
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await asked(ana, model, CONFIRMATION)
    await expect(card(ana, "Delete the table?")).to_be_visible()  # the session can be waiting before the card is drawn
    holding = True
    await card(bo, "Delete the table?").get_by_role("button", name="Delete it").click()
    await expect(card(bo, "Delete the table?")).to_contain_text("Bo answered")
    await card(ana, "Delete the table?").get_by_role("button", name="No").click()
    await expect(ana.page.locator("#toasts")).to_contain_text("Bo has already answered.")
    holding = False
    await ana.page.reload()
    await expect(card(ana, "Delete the table?")).to_contain_text(re.compile("Delete it.*Bo answered", re.S))
    await ana.sees_state("idle")


async def test_what_was_typed_is_kept_when_another_person_answers(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """UI-12: the text goes to the composer of the user who typed it, and to no other one."""
    bo = await invited(ana, browser, "Bo")
    await asked(ana, model, PLAN)
    plan = card(bo, "The plan")
    await press(plan, "Edit")
    await plan.get_by_label("Plan (Markdown)").fill("1. Do that")
    await press(card(ana, "The plan"), "Approve")
    await expect(bo.composer).to_have_value("1. Do that")
    await expect(bo.page.get_by_role("alert")).to_contain_text("What you typed is in the composer.")
    await expect(plan).to_contain_text("Admin answered")
    await expect(ana.composer).to_have_value("")
    await ana.sees_state("idle")


@pytest.mark.both_browsers
async def test_tool_is_approved_by_keyboard_and_a_viewer_only_looks_on(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """Refused with words, then with other arguments, then for the session, after which it is not asked for again."""
    bo = await invited(ana, browser, "Bo")
    await let_look_only(ana, bo)
    await asked(ana, model, SUM, then="As you wish")
    press, page = ana.page.keyboard.press, ana.page
    question = card(ana, "wire-large wants to run calculator")
    await expect(question).to_contain_text(re.compile("expression.*6*7", re.S))
    theirs = card(bo, "wire-large wants to run calculator")
    await expect(theirs).to_contain_text("Only editors can answer")
    await expect(theirs.get_by_role("button")).to_have_count(0)
    await expect(bo.page.locator("#status").get_by_role("button")).to_have_count(0)

    await ana.composer.focus()
    await press("Alt+ArrowDown")
    await expect(question).to_be_focused()
    await press("Tab")
    await expect(page.get_by_role("button", name="Allow once")).to_be_focused()
    await press("Tab")
    await press("Tab")
    await press("Enter")
    await expect(page.get_by_label("What should the agent know?")).to_be_focused()
    await page.keyboard.type("In your head, please")
    await press("Control+Enter")
    await expect(bo.page.locator(".decision")).to_contain_text("Admin refused: In your head, please")
    await ana.sees_state("idle")
    assert results(model) == ["[Not run: Admin refused this call.] In your head, please"]

    # A text with this sign is edited as JSON: a field would change it.
    await asked(ana, model, ("calculator", {"expression": "6*7\r"}), then="Eight")
    await page.locator("#status").get_by_role("button", name="Answer").press("Enter")
    await expect(question).to_be_focused()
    for _button in ("Allow once", "More ways to allow", "Refuse…", "Edit arguments"):
        await press("Tab")
    await press("Enter")
    field = page.get_by_label("Arguments as JSON")
    await expect(field).to_be_focused()
    await field.fill("{")
    await press("Control+Enter")
    await expect(question.get_by_role("alert")).to_contain_text("This isn’t valid JSON")
    await field.fill('{"expression": 5}')
    await press("Control+Enter")
    await expect(question.get_by_role("alert")).to_contain_text("expression")
    await field.fill('{"expression": "4*2"}')
    await press("Control+Enter")
    await expect(bo.page.locator(".decision").last).to_contain_text("Admin allowed this once")
    await ana.sees_state("idle")
    await expect(ana.answers.last).to_contain_text("Eight")
    assert results(model)[-1] == "8"

    await asked(ana, model, SUM, then="42")
    await page.get_by_role("button", name="More ways to allow").click()
    await expect(page.get_by_role("menuitem")).to_have_text(["Allow for this session", "Always allow for this agent"])
    await press("Enter")
    await expect(bo.page.locator(".decision").last).to_contain_text("Admin allowed this for the session")
    await ana.sees_state("idle")
    model.script(asking(SUM), reply("Again"))
    await ana.say("And again")
    await expect(ana.answers.last).to_contain_text("Again")
    bo.complain()


async def test_plan_is_rejected_with_words_and_one_thing_is_chosen(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """The words go to the model and are on both pages; a single choice is a list of one."""
    bo = await invited(ana, browser, "Bo")
    single = ("selection", {"question": "Which fruit?", "choices": CHOICES})
    await asked(ana, model, PLAN, single)
    await press(card(bo, "The plan"), "Reject…")
    await card(bo, "The plan").get_by_role("textbox").locator("visible=true").fill("Too soon")
    await press(card(bo, "The plan"), "Reject")
    await expect(card(ana, "The plan")).to_contain_text(re.compile("Too soon.*Bo answered", re.S))
    await card(ana, "Which fruit?").get_by_role("radio", name="Pears").check()
    await press(card(ana, "Which fruit?"), "Send answer")
    await expect(card(bo, "Which fruit?")).to_contain_text(re.compile("Pears.*Admin answered", re.S))
    await expect(bo.answers.last).to_contain_text("Done")
    assert results(model) == [{"decision": "reject", "comment": "Too soon"}, ["b"]]
    bo.complain()


async def test_tool_is_always_allowed_by_the_owner_alone(ana: Person, model: WireServer, browser: Browser) -> None:
    """A guest is not offered it. Afterwards another session of the workspace does not ask."""
    bo = await invited(ana, browser, "Bo")
    await asked(ana, model, SUM, then="42")
    await card(bo, "wants to run calculator").get_by_role("button", name="More ways to allow").click()
    await expect(bo.page.get_by_role("menuitem")).to_have_text(["Allow for this session"])
    await bo.page.keyboard.press("Escape")
    await ana.page.get_by_role("button", name="More ways to allow").click()
    await ana.page.get_by_role("menuitem", name="Always allow for this agent").click()
    await expect(bo.page.locator(".decision")).to_contain_text("Admin always allows this for this agent")
    await ana.sees_state("idle")
    await ana.begin()
    model.script(asking(SUM), reply("Again"))
    await ana.say("And again")
    await expect(ana.answers.last).to_contain_text("Again")
    bo.complain()


async def test_message_and_stop_end_the_wait(ana: Person, model: WireServer) -> None:
    """The composer says that a message skips the question; both leave the card as not answered."""
    await asked(ana, model, CONFIRMATION, then="Never mind")
    await expect(ana.composer).to_have_attribute("placeholder", "Send a message to skip the question…")
    await ana.say("Leave it")
    await expect(ana.answers.last).to_contain_text("Never mind")
    await expect(card(ana, "Delete the table?")).to_contain_text("Not answered")
    await ana.sees_state("idle")
    model.script(asking(SUM))
    await ana.say("Go on")
    await ana.sees_state("waiting")
    await ana.stop.click()
    await ana.sees_state("idle")
    await expect(ana.page.locator(".decision")).to_have_text(re.compile("Not answered"))
    await expect(card(ana, "wants to run")).to_have_count(0)


async def test_sessions_that_wait_for_the_user_come_first(ana: Person, model: WireServer, browser: Browser) -> None:
    """In the list, in the tab's title, and as a notification to a user who looks elsewhere; not for viewers."""
    await ana.page.add_init_script(BROWSER)
    await ana.page.reload()
    await ana.page.evaluate("document.documentElement.dataset.notify = 'yes'")
    await asked(ana, model, CONFIRMATION)
    group = ana.page.get_by_role("region", name="Waiting for you (1)")
    await expect(group.get_by_role("link")).to_have_accessible_name(re.compile("Go Waiting for your answer"))
    await expect(ana.page).to_have_title(re.compile(r"^\(1\) "))
    await ana.page.wait_for_function("() => shown.length > 0")
    await ana.page.evaluate("document.getElementById('main').dataset.status = 'waiting'")  # as each frame with it does
    assert await ana.page.evaluate("shown") == [["Go", "wire-large asks: Delete the table?"]]
    await card(ana, "Delete the table?").get_by_role("button", name="No").click()
    await expect(group).to_have_count(0)
    await expect(ana.page).to_have_title(re.compile(r"^Go"))
    await ana.sees_state("idle")


async def test_notification_leads_to_an_approval_in_reach_of_a_thumb(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """UI-22: however long the arguments are; scrolled up, one press leads back. It is decided where it can be read."""
    address = f"https://example.org/{'long/' * 400}"
    model.script(reply("\n\n".join(["Well."] * 40)))
    await ana.say("Tell me more")
    await expect(ana.answers.first).to_contain_text("Well.")
    await ana.sees_state("idle")
    await asked(ana, model, ("web_fetch", {"url": address}), then="Never mind")
    state = await ana.page.context.storage_state()
    size = ViewportSize(width=360, height=640)
    context = await browser.new_context(storage_state=state, viewport=size, has_touch=True, is_mobile=True)
    phone = Person(await context.new_page())
    await phone.page.goto(f"{ana.page.url}#waiting")
    approve = phone.page.get_by_role("button", name="Allow once")
    refuse = phone.page.get_by_role("button", name="Refuse…")
    for button in (approve, refuse):
        await expect(button).to_be_in_viewport(ratio=1)
        box = await button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
    await expect(phone.page).not_to_have_url(re.compile("#"))
    await expect(phone.page.locator(".question")).to_be_focused()  # the page has gone to it, and scrolls no more
    await phone.page.locator("#log").evaluate("log => (log.scrollTop = 0)")
    await phone.page.get_by_role("button", name="Go to question").tap()
    await expect(approve).to_be_in_viewport(ratio=1)
    await refuse.tap()
    refused = phone.page.get_by_role("button", name="Refuse", exact=True)
    await expect(refused).to_be_in_viewport(ratio=1)
    await refused.tap()
    await phone.sees_state("idle")
    phone.complain()
    await context.close()


async def test_notice_of_a_second_person_covers_no_question(ana: Person, model: WireServer, browser: Browser) -> None:
    """The toast that says how the agent answers from now on leaves the card and its buttons free."""
    model.script(reply("\n\n".join(["A long answer"] * 40)))
    await ana.say("Before that")
    await expect(ana.answers).to_have_count(1)
    await ana.sees_state("idle")
    await asked(ana, model, SUM)
    bo = await invited(ana, browser, "Bo", automatic=True)
    toast = ana.page.locator("#toasts .toast", has_text="Several people are here now")
    await toast.hover()  # it stays
    await ana.page.locator("#log").evaluate("log => { log.scrollTop = log.scrollHeight }")
    for width, height in ((1200, 800), (390, 844)):
        await ana.page.set_viewport_size({"width": width, "height": height})
        for name in ("Allow once", "Refuse…", "Edit arguments", "Answer"):
            button = ana.page.get_by_role("button", name=name, exact=True)
            await expect(button).to_be_in_viewport(ratio=1)
            assert await button.evaluate(UNCOVERED), (width, name)
    bo.complain()


async def test_approval_by_touch(ana: Person, model: WireServer, browser: Browser) -> None:
    """On a phone the main button is as wide as the card and large enough for a thumb."""
    await asked(ana, model, SUM, then="42")
    state = await ana.page.context.storage_state()
    context = await browser.new_context(storage_state=state, viewport=PHONE, has_touch=True, is_mobile=True)
    phone = Person(await context.new_page())
    await phone.page.goto(ana.page.url)
    await phone.sees_connection("Connected")
    allow = phone.page.get_by_role("button", name="Allow once")
    for button in (allow, phone.page.get_by_role("button", name="Refuse…")):
        box = await button.bounding_box()
        assert box
        assert box["height"] >= 44
        assert box["width"] >= 0.7 * PHONE["width"] - 60
    await allow.tap()
    await expect(ana.page.locator(".decision")).to_contain_text("Admin allowed this once")
    await expect(phone.answers.last).to_contain_text("42")
    await phone.sees_state("idle")
    phone.complain()


async def test_answer_without_a_network_says_so(ana: Person, model: WireServer) -> None:
    """UI-12, LIVE-04: in the card, which can be answered when the network is back."""
    await asked(ana, model, SUM, then="42 it is")
    question = card(ana, "wants to run calculator")
    await ana.page.context.set_offline(True)
    await ana.page.evaluate("window.dispatchEvent(new Event('offline'))")
    await ana.sees_connection("You’re offline")
    await question.get_by_role("button", name="Allow once").click()
    await expect(question.get_by_role("alert")).to_have_text("You’re offline. Try again when you’re connected.")
    await ana.page.context.set_offline(False)
    await ana.sees_connection("Connected")
    await question.get_by_role("button", name="Allow once").click()
    await expect(ana.answers.last).to_contain_text("42 it is")
