"""Choices on the page while another request is under way, and choices that are refused."""

from __future__ import annotations

import asyncio
import json

from playwright.async_api import Browser, Route, WebSocketRoute, expect

from agents.messages import Json
from tests.browser.person import Person
from tests.browser.test_after_changes import ask_api
from tests.browser.test_chat import invited, reply
from tests.browser.test_knowledge import add_files, open_knowledge
from tests.browser.test_messages import talk
from tests.browser.test_retry import texts
from tests.wire.server import WireServer


class RefusingLine:
    """The page's socket, on which commands of one type never reach the server until the test refuses them."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._held: asyncio.Queue[Json] = asyncio.Queue()

    async def lead(self, route: WebSocketRoute) -> None:
        self._page, self._server = route, route.connect_to_server()
        route.on_message(self._carry)

    async def refuse(self) -> None:
        ref = (await self._held.get())["ref"]
        self._page.send(json.dumps({"type": "refused", "ref": ref, "code": "rate_limited", "message": "Not now."}))

    def _carry(self, frame: str | bytes) -> None:
        command = json.loads(frame)
        if command["type"] == self._kind:
            self._held.put_nowait(command)
        else:
            self._server.send(frame)


async def test_chosen_knowledge_stays_until_it_is_refused(ana: Person) -> None:
    """CTX-09: a panel that is rendered during the request shows the choice, and after a refusal the stored value."""
    session = ana.page.url
    ana.ignore_refusals()
    await add_files(await open_knowledge(ana))
    line = RefusingLine("configure")
    await ana.page.route_web_socket("**/ws/**", line.lead)
    await ana.page.goto(session)
    await ana.sees_connection("Connected")
    await ana.page.get_by_role("button", name="Session details").click()
    box = ana.page.get_by_role("region", name="Knowledge").get_by_label("Shop.md")
    await box.check()
    assert (await ask_api(ana, "PATCH", "", {"system_prompt": "Be brief."})).ok
    await expect(ana.page.locator("#prompt")).to_have_value("Be brief.")
    await expect(box).to_be_checked()
    await line.refuse()
    await expect(ana.page.get_by_role("alert")).to_contain_text("Not now.")
    await expect(box).not_to_be_checked()
    ana.check_console()


async def test_switch_by_another_user_takes_no_focus(ana: Person, model: WireServer, browser: Browser) -> None:
    """RUN-12: a user who switches versions keeps the focus on the buttons.

    If the switch was refused, a later switch by another user does not move this user's focus.
    """
    await talk(ana, model, "First")
    bo = await invited(ana, browser, "Bo")
    line = RefusingLine("switch_attempt")
    await bo.page.route_web_socket("**/ws/**", line.lead)
    await bo.page.reload()
    await bo.sees_connection("Connected")
    model.script(reply("Second"))
    await ana.answers.first.focus()
    await ana.answers.first.press("r")
    await expect(bo.answers).to_have_text(texts("Second"))
    await bo.sees_state("idle")
    await bo.page.get_by_role("button", name="Previous version").press("Enter")
    await line.refuse()
    await expect(bo.page.get_by_role("alert")).to_contain_text("Not now.")
    await bo.composer.focus()
    await ana.answers.first.focus()
    await ana.answers.first.press("ArrowLeft")
    await expect(bo.answers).to_have_text(texts("First"))
    await expect(bo.page.locator(".attempts")).to_have_text("1/2")
    await expect(bo.composer).to_be_focused()
    bo.check_console()


async def test_focus_leaves_the_fold_button_of_the_queue(ana: Person, model: WireServer) -> None:
    """RUN-06: the button that folds the queue disappears when the messages are delivered.

    The composer then gets its focus.
    """
    gate = asyncio.Event()
    model.script(reply("So far", gate=gate))
    await ana.say("Go")
    await expect(ana.answers.first).to_contain_text("So far")
    for number in range(3):
        await ana.say(f"Queued {number}")
        await expect(ana.queue.filter(has_text=f"Queued {number}")).to_have_count(1)
    fold = ana.page.get_by_role("button", name="3 messages are queued")
    await fold.focus()
    await expect(fold).to_be_focused()
    model.script(reply("Next"))
    gate.set()
    await expect(ana.queue).to_have_count(0)
    await expect(fold).to_be_hidden()
    await expect(ana.composer).to_be_focused()
    ana.check_console()


async def test_second_switch_waits_for_the_first_request(ana: Person) -> None:
    """UI-24: a switch that the user turns during the request of another switch is sent afterwards."""
    await ana.say("/schedule Summarize the reports.")
    dialog = ana.page.get_by_role("dialog", name="Schedules")
    await dialog.get_by_role("button", name="Add schedule").click()
    await dialog.get_by_role("button", name="New schedule").click()
    await dialog.locator("#schedule-form-new").get_by_label("Message").fill("Water the plants.")
    await dialog.get_by_role("button", name="Add schedule").click()
    switches = dialog.get_by_role("switch")
    await expect(switches).to_have_count(2)
    gate = asyncio.Event()

    async def late(route: Route) -> None:
        await gate.wait()
        await route.continue_()

    await ana.page.route("**/schedules", late, times=1)
    async with ana.page.expect_request("**/schedules"):
        await switches.first.uncheck()
    await switches.last.uncheck()
    gate.set()
    await expect(dialog.get_by_text("Off", exact=True)).to_have_count(2)
    await expect(switches.last).to_be_focused()
    ana.check_console()
