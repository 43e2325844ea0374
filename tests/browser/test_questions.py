"""UI-12: questions of an agent on the page, answered by one user and seen by another."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, ViewportSize, WebSocketRoute, expect

from agents.messages import Json
from tests.browser.conftest import CONFIG
from tests.browser.person import PATIENCE, Person, choose_in_account_menu
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, make_viewer, reply
from tests.browser.test_messages import UNCOVERED
from tests.browser.test_notifications import BROWSER
from tests.browser.test_retry import PHONE
from tests.support.server import Server, run_in
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
    """Return the results of the tools in the model's last request, parsed if they are JSON."""
    contents = [each["content"] for each in model.requests[-1].body["messages"] if each["role"] == "tool"]
    return [json.loads(text) if text[:2] in ('["', '{"', '"a') else text for text in contents]


def card(person: Person, title: str) -> Locator:
    return person.page.get_by_role("group", name=title)


async def press(question: Locator, name: str) -> None:
    """Press a button by script. A click at a position could miss it, because cards move when others are answered."""
    await question.get_by_role("button", name=name).evaluate("button => button.click()")


async def asked(person: Person, model: WireServer, *calls: tuple[str, Json], then: str = "Done") -> None:
    """Let the agent ask these questions, and wait until the page shows that it waits."""
    model.script(asking(*calls), reply(then))
    await person.say("Go")
    await person.sees_state("waiting")


@pytest.mark.any_browser
async def test_every_kind_of_question_is_answered(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: each answer is immediately shown read-only on the other user's page.

    After the last one, the turn continues.
    """
    bo = await invited(ana, browser, "Bo")
    await asked(ana, model, SELECTION, CONFIRMATION, PLAN, FEEDBACK, ACTIONS, FORM)
    await expect(ana.page.locator("#announcer")).to_contain_text("wire-large asks: Which fruit?")
    assert await violations(ana.page) == []

    choice = card(ana, "Which fruit?")
    await choice.get_by_role("checkbox", name="Pears").check()
    await press(choice, "Send answer")
    await expect(card(bo, "Which fruit?")).to_contain_text(re.compile(r"Pears.*Admin answered · \d\d:\d\d", re.S))
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
    await bo.sees_connection("Connected")
    assert await bo.page.locator(".question").all_inner_texts() == before
    assert await violations(bo.page) == []
    bo.check_console()


@pytest.mark.parametrize("at_end", [True, False])
async def test_question_under_the_pointer_does_not_move(
    ana: Person, model: WireServer, browser: Browser, at_end: bool
) -> None:
    """UI-12: a click reaches its button while another user answers a question above it.

    This holds at the end of the list and elsewhere.
    """
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


async def test_refused_answer_and_draft_are_kept(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: the card of a refused answer shows an error at its field.

    The input survives the error, a reload, and the answer to another card.
    """
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


async def test_second_answer_is_refused(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: an answer from a page that has not received the first answer yet is refused.

    The card then shows the first one.
    """
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


async def test_typed_answer_is_kept_if_another_user_answers(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: the text in a card that another user answers goes to the composer of the user who typed it."""
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
async def test_calls_are_approved_by_keyboard(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: a user refuses one call with a comment and allows one with edited arguments.

    A call that is allowed for the session lets the next one run without asking. A viewer sees the cards without
    buttons.
    """
    bo = await invited(ana, browser, "Bo")
    await make_viewer(ana, bo)
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
    await press("Escape")
    await expect(page.get_by_role("button", name="Refuse…")).to_be_focused()
    await press("Enter")
    await expect(page.get_by_label("What should the agent know?")).to_have_value("In your head, please")
    await press("Control+Enter")
    await expect(bo.page.locator(".decision")).to_contain_text("Admin refused: In your head, please")
    await ana.sees_state("idle")
    assert results(model) == ["[Not run: Admin refused this call.] In your head, please"]

    # A text with a carriage return is edited as JSON, because a field would change it.
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
    bo.check_console()


async def test_plan_is_rejected_with_a_comment(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: the comment on a rejected plan goes to the model and is on both pages.

    The model gets a single choice as a list of one.
    """
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
    bo.check_console()


async def test_only_the_owner_can_always_allow_a_tool(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: a guest cannot always allow a tool.

    After the owner has done so, another session of the workspace does not ask.
    """
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
    bo.check_console()


GUARDED = """
tools = ["calculator", "confirmation"]
[agents.assistant.approval]
ask = [{{ rule = "calculator", approvers = "admin" }}]
"""
NEEDS_ADMIN = 'data-approvers=\\"admin\\"'  # in the JSON of a frame
OTHER_ADMIN = """
from chat.models import Membership
Membership.objects.update(role="member")
Membership.objects.filter(user__username="bo").update(role="admin")
"""


async def owner_and_admin(browser: Browser, server: Server) -> tuple[Person, Person]:
    """Return the owner of a private session, who may not approve, and an admin who is not in it."""
    ana = await Person.in_a_session(browser, server.link)
    bo = await invited(ana, browser, "Bo", member=True)
    run_in(server, OTHER_ADMIN)
    return ana, bo


async def test_private_session_is_shared_with_a_user_who_can_approve(
    servers: SharedServers, model: WireServer, browser: Browser
) -> None:
    """UI-20: if no user of a session may approve a call, its card says so and opens the share dialog.

    After the dialog has let in an admin, the sentence disappears, and the focus goes to the card. The page has loaded
    the script for questions before, and the card reaches it after the call, so it is rendered into an existing message.
    """
    held: list[str | bytes] = []
    routes: list[WebSocketRoute] = []
    has_card, may_go_on = asyncio.Event(), asyncio.Event()

    async def lead(route: WebSocketRoute) -> None:
        def carry(frame: str | bytes) -> None:
            if NEEDS_ADMIN in str(frame):
                has_card.set()
            if has_card.is_set() and not may_go_on.is_set():
                held.append(frame)
            else:
                route.send(frame)

        routes.append(route)
        route.connect_to_server().on_message(carry)

    async with servers.use(CONFIG + GUARDED) as server:
        ana, bo = await owner_and_admin(browser, server)
        await ana.page.route_web_socket("**/ws/**", lead)
        await ana.begin()
        await asked(ana, model, CONFIRMATION)
        await card(ana, "Delete the table?").get_by_role("button", name="No").click()
        await ana.sees_state("idle")
        model.script(asking(SUM), reply("42"))
        await ana.say("Go on")
        await expect(ana.page.locator("article.tool_group[data-status=pending]")).to_be_visible()
        async with asyncio.timeout(PATIENCE / 1000):
            await has_card.wait()
        may_go_on.set()
        for frame in held:
            routes[-1].send(frame)
        question = card(ana, "wants to run calculator")
        stuck = question.get_by_text("No one in this session can approve this.")
        await expect(stuck).to_be_visible()
        await expect(question.get_by_role("button", name="Approve")).to_be_hidden()
        await expect(question.get_by_text("Only owners and admins")).to_be_hidden()
        assert await violations(ana.page) == []
        await question.get_by_role("button", name="Share session").press("Enter")
        await add_as_editor(ana, "Bo")
        await expect(stuck).to_be_hidden()
        await expect(question.get_by_text("Only owners and admins")).to_be_visible()
        await expect(question).to_be_focused()
        await bo.page.goto(ana.page.url)
        await card(bo, "wants to run calculator").get_by_role("button", name="Approve").click()
        await expect(ana.answers.last).to_contain_text("42")
        for person in (ana, bo):
            person.check_console()


TWO_APPROVALS = """
tools = ["calculator"]
[agents.assistant.approval]
ask = [{{ rule = "calculator", approvals = 2 }}]
"""


async def test_session_with_too_few_users_is_shared_with_more(
    servers: SharedServers, model: WireServer, browser: Browser
) -> None:
    """UI-20: if a call needs more approvals than the session has users who can approve it, its card says so.

    Its owner can approve it before, and opens the share dialog from the card.
    """
    async with servers.use(CONFIG + TWO_APPROVALS) as server:
        ana = await Person.in_a_session(browser, server.link)
        bo = await invited(ana, browser, "Bo", member=True)
        await ana.begin()
        model.script(asking(SUM), reply("42"))
        await ana.say("Go on")
        question = card(ana, "wants to run calculator")
        few = question.get_by_text("Not enough people in this session can approve this.")
        await expect(few).to_be_visible()
        await expect(question.get_by_text("No one in this session")).to_be_hidden()
        await question.get_by_role("button", name="Approve").click()
        await expect(question.get_by_text("You approved this.")).to_be_visible()
        await expect(few).to_be_visible()
        assert await violations(ana.page) == []
        await question.get_by_role("button", name="Share session").press("Enter")
        await add_as_editor(ana, "Bo")
        await expect(few).to_be_hidden()
        await expect(question).to_be_focused()
        await bo.page.goto(ana.page.url)
        theirs = card(bo, "wants to run calculator")
        await expect(theirs.get_by_text("Not enough people")).to_be_hidden()
        await theirs.get_by_role("button", name="Approve").click()
        await expect(ana.answers.last).to_contain_text("42")
        for person in (ana, bo):
            person.check_console()


async def add_as_editor(owner: Person, name: str) -> None:
    """Add a user in the open share dialog, and close it."""
    dialog = owner.page.get_by_role("dialog", name="Share session")
    await dialog.locator(".candidate", has_text=name).click()
    await dialog.locator(".adding").get_by_label("Role").select_option("editor")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(owner.page.locator("#main")).to_have_attribute("data-approvers", re.compile('"": 2'))
    await owner.page.keyboard.press("Escape")


async def test_message_and_stop_end_the_wait(ana: Person, model: WireServer) -> None:
    """UI-12: the composer shows that a message skips the question.

    A message and Stop both leave the question as not answered.
    """
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


async def test_archived_session_offers_no_way_to_an_answer(ana: Person, model: WireServer) -> None:
    """UI-12: the card has no form there, so the status does not lead to it, until the session is restored."""
    model.script(asking(SUM))
    await ana.say("Go on")
    answer = ana.page.locator("#status").get_by_role("button", name="Answer")
    await expect(answer).to_be_visible()
    await ana.composer.fill("/archive")
    await ana.composer.press("Enter")
    await expect(answer).to_be_hidden()
    await ana.page.get_by_role("button", name="Restore", exact=True).click()
    await expect(answer).to_be_visible()


async def test_waiting_sessions_come_first(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: a session that waits for the user is in the first group of the list.

    The tab's title counts it, and one notification reports it.
    """
    await ana.page.add_init_script(BROWSER)
    await ana.page.reload()
    await ana.page.evaluate("document.documentElement.dataset.notify = 'yes'")
    await asked(ana, model, CONFIRMATION)
    group = ana.page.get_by_role("region", name="Waiting for you (1)")
    await expect(group.get_by_role("link")).to_have_accessible_name(re.compile("Go Waiting for your answer"))
    await expect(ana.page).to_have_title(re.compile(r"^\(1\) "))
    await ana.page.wait_for_function("() => shown.length > 0")
    await ana.page.evaluate("document.getElementById('main').dataset.status = 'waiting'")  # frames set it repeatedly
    assert await ana.page.evaluate("shown") == [["Go", "wire-large asks: Delete the table?"]]
    await card(ana, "Delete the table?").get_by_role("button", name="No").click()
    await expect(group).to_have_count(0)
    await expect(ana.page).to_have_title(re.compile(r"^Go"))
    await ana.sees_state("idle")


async def test_home_page_counts_waiting_sessions_in_its_tab(ana: Person, model: WireServer) -> None:
    """UI-12: the title of the home page's tab has the number of sessions that wait, and follows it.

    It stays while the list shows the archived sessions.
    """
    home = await ana.page.context.new_page()
    await home.goto(urljoin(ana.page.url, "/"))
    await expect(home).to_have_title("New session · Parley")
    await asked(ana, model, CONFIRMATION)
    await expect(home).to_have_title("(1) New session · Parley")
    await home.reload()
    await expect(home).to_have_title("(1) New session · Parley")
    await choose_in_account_menu(home, "Archived sessions")
    await expect(home.get_by_role("button", name="All sessions")).to_be_focused()
    await expect(home).to_have_title("(1) New session · Parley")
    await home.get_by_role("button", name="All sessions").click()
    await card(ana, "Delete the table?").get_by_role("button", name="No").click()
    await expect(home).to_have_title("New session · Parley")


async def test_notification_leads_to_the_buttons_of_an_approval(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """UI-22: the buttons of an approval with long arguments are in view on a phone. One tap leads back to them."""
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
    await expect(phone.page.locator(".question")).to_be_focused()  # the page has finished scrolling to it
    await phone.page.locator("#log").evaluate("log => (log.scrollTop = 0)")
    await phone.page.get_by_role("button", name="Go to question").tap()
    await expect(approve).to_be_in_viewport(ratio=1)
    await refuse.tap()
    refused = phone.page.get_by_role("button", name="Refuse", exact=True)
    await expect(refused).to_be_in_viewport(ratio=1)
    await refused.tap()
    await phone.sees_state("idle")
    phone.check_console()
    await context.close()


async def test_toast_about_the_behavior_covers_no_question(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: when a second user joins, a toast about the agent's new behavior appears.

    It does not cover the card and its buttons.
    """
    model.script(reply("\n\n".join(["A long answer"] * 40)))
    await ana.say("Before that")
    await expect(ana.answers).to_have_count(1)
    await ana.sees_state("idle")
    await asked(ana, model, SUM)
    bo = await invited(ana, browser, "Bo", automatic=True)
    toast = ana.page.locator("#toasts .toast", has_text="Several people can write here now")
    await toast.hover()  # it stays
    await ana.page.locator("#log").evaluate("log => { log.scrollTop = log.scrollHeight }")
    for width, height in ((1200, 800), (390, 844)):
        await ana.page.set_viewport_size({"width": width, "height": height})
        for name in ("Allow once", "Refuse…", "Edit arguments", "Answer"):
            button = ana.page.get_by_role("button", name=name, exact=True)
            await expect(button).to_be_in_viewport(ratio=1)
            assert await button.evaluate(UNCOVERED), (width, name)
    bo.check_console()


async def test_approval_by_touch(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-12: on a phone the main button is as wide as the card and large enough for a thumb."""
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
    phone.check_console()


async def test_answer_without_a_network_is_reported(ana: Person, model: WireServer) -> None:
    """UI-12, LIVE-04: the card says that there is no network, and can be answered when it is back."""
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
