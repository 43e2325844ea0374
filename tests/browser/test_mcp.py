"""MCP servers in a real browser: the workspace's page, and the results of their tools (UI-16)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, Route, ViewportSize, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person, choose_in_account_menu, shows_briefly
from tests.browser.test_accessibility import violations
from tests.browser.test_after_changes import ask_api
from tests.browser.test_asking import offered
from tests.browser.test_chat import invited, reply
from tests.browser.test_questions import asking
from tests.browser.test_retry import PHONE
from tests.support.mcp_server import AUTH_SERVER, serving
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer

DESKTOP: ViewportSize = {"width": 1280, "height": 800}
EXAMPLE = Path(__file__).parents[2] / "agents/mcp/example_server.py"
MORE = f"""
tools = ["example__*"]
[agents.assistant.approval]
allow = ["*"]
[mcp.example]
command = ["{sys.executable}", "-I", "{EXAMPLE}"]
sandbox = false
"""


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent uses the example MCP server, and whose workspaces may add servers on this machine."""
    async with servers.use(CONFIG + MORE, LEASE_SECONDS="2", MCP_INTERNAL_HOSTS="127.0.0.1") as server:
        yield server


async def open_servers(person: Person) -> Page:
    await person.choose_in_account_menu("Workspace settings")
    await person.page.get_by_role("link", name="Manage servers").click()
    await expect(person.page.get_by_role("heading", name="MCP servers", level=1)).to_be_visible()
    return person.page


async def test_owner_adds_tests_changes_and_removes_a_server(ana: Person) -> None:
    """UI-16: the form's secrets are never shown again, and the connection can be tested."""
    page = await open_servers(ana)
    with serving() as address:
        add = page.get_by_role("region", name="Add an MCP server")
        await add.get_by_label("Name").fill("tests")
        await add.get_by_label("Address").fill("ftp://nowhere")
        await add.get_by_role("button", name="Add server").click()
        await expect(add.get_by_role("alert")).to_contain_text("Enter a web address")
        ana.ignore_refusals()
        await add.get_by_label("Address").fill(address)
        await add.get_by_label("Secret headers").fill("X-Secret: swordfish")
        await add.get_by_role("button", name="Add server").click()
        await expect(page.locator("#toasts")).to_contain_text("“tests” added.")
        assert "swordfish" not in await page.content()
        row = page.locator(".mcp-servers > li")
        await expect(row).to_contain_text("secret headers: X-Secret")
        await row.get_by_role("button", name="Test connection").click()
        await expect(row.get_by_role("status")).to_contain_text("Connected. It has")
        await expect(row.get_by_role("status")).to_contain_text("Add two numbers.")
        assert await violations(page) == []
    await row.get_by_role("button", name="Test connection").click()
    await expect(row.get_by_role("status")).to_contain_text("Couldn’t connect")
    await row.locator("summary", has_text="Edit").click()
    await row.get_by_label("Available").uncheck()
    await row.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("turned off")
    await row.locator("summary", has_text="Remove").click()
    await row.get_by_role("button", name="Remove server").click()
    await expect(page.locator(".mcp-servers")).to_have_count(0)


async def test_members_have_no_page_of_servers(ana: Person, browser: Browser) -> None:
    """UI-16, LIVE-06: only owners and admins manage servers."""
    bo = await invited(ana, browser, "Bo", member=True)
    await bo.choose_in_account_menu("Workspace settings")
    await expect(bo.page.get_by_role("heading", name="Members")).to_be_visible()
    await expect(bo.page.get_by_role("link", name="Manage servers")).to_have_count(0)
    bo.check_console()


async def test_prompts_of_a_server_are_commands(ana: Person, model: WireServer) -> None:
    """UI-17: a prompt is put into the composer; one with arguments asks for them, and can be cancelled.

    What the user types in the meantime stays, and so does the command after Cancel.
    If the server refuses the arguments, they are shown again with the reason.
    """
    session = ana.page.url
    page = await open_servers(ana)
    with serving() as address:
        add = page.get_by_role("region", name="Add an MCP server")
        await add.get_by_label("Name").fill("tests")
        await add.get_by_label("Address").fill(address)
        await add.get_by_role("button", name="Add server").click()
        await expect(page.locator("#toasts")).to_contain_text("“tests” added.")
        await page.goto(session)
        await ana.sees_connection("Connected")
        await ana.composer.press_sequentially("/tests__g")
        await ana.page.get_by_role("option", name="/tests__greet Say hello.").click()
        await expect(ana.composer).to_have_value("Say hello to everyone.")
        await ana.composer.fill("")
        held: asyncio.Queue[Route] = asyncio.Queue()
        await ana.page.route("**/prompts/fill", held.put, times=1)
        await ana.composer.press_sequentially("/tests__greet ")
        await ana.page.keyboard.press("Enter")
        request = await held.get()
        await ana.composer.press_sequentially("And thank them.")
        await request.continue_()
        await expect(ana.composer).to_have_value("Say hello to everyone.\n\nAnd thank them.")
        await ana.composer.fill("")
        await ana.composer.press_sequentially("/tests__review x = 1")
        await ana.page.keyboard.press("Enter")
        dialog = ana.page.get_by_role("dialog", name="Review some code.")
        await expect(dialog.get_by_label("code")).to_have_value("x = 1")
        await expect(dialog.locator("label > span:has(.required)")).to_have_text(["code *"])
        assert await violations(ana.page) == []
        await dialog.get_by_label("language").fill("Go")
        problems = {"bad": "Error rendering prompt review", "none": "This prompt has no text.", "long": "too long"}
        for code, problem in problems.items():
            await dialog.get_by_label("code").fill(code)
            await dialog.get_by_role("button", name="Insert").click()
            await expect(dialog.get_by_role("alert")).to_contain_text(problem)
            await expect(dialog.get_by_label("code")).to_have_value(code)
            await expect(dialog.get_by_label("language")).to_have_value("Go")
        await dialog.get_by_role("button", name="Cancel").click()
        await expect(ana.composer).to_have_value("/tests__review x = 1")
        await ana.composer.fill("")
        await ana.composer.press_sequentially("/tests__review y = 2")
        await ana.page.keyboard.press("Enter")
        await dialog.get_by_label("language").fill("Ruby")
        await dialog.get_by_label("code").press("End")
        await dialog.get_by_label("code").press("Enter")
        await dialog.get_by_label("code").press_sequentially("z = 3")
        await dialog.get_by_label("code").press("Control+Enter")
        await expect(ana.composer).to_have_value("Review this Ruby code:\ny = 2\nz = 3")
        model.script(reply("Fine."))
        await ana.page.keyboard.press("Enter")
        await expect(ana.answers.last).to_contain_text("Fine.")
    ana.ignore_refusals()


async def test_prompts_are_fetched_again_when_the_session_changes(ana: Person) -> None:
    """UI-17: the commands include the prompts of a server that is added later.

    If a server has stopped, using its prompt shows this.
    """
    await ana.composer.press_sequentially("/n")  # loads the present prompts
    await expect(ana.page.get_by_role("option").first).to_be_visible()
    await ana.composer.fill("")
    other = await ana.page.context.new_page()
    with serving() as address:
        await other.goto(ana.page.url)
        await choose_in_account_menu(other, "Workspace settings")
        await other.get_by_role("link", name="Manage servers").click()
        add = other.get_by_role("region", name="Add an MCP server")
        await add.get_by_label("Name").fill("tests")
        await add.get_by_label("Address").fill(address)
        await add.get_by_role("button", name="Add server").click()
        await expect(other.locator("#toasts")).to_contain_text("“tests” added.")
        await other.close()
        await ana.composer.press_sequentially("/rename Prompts")
        await ana.page.keyboard.press("Enter")
        await expect(ana.page.locator("[data-part=title]").first).to_contain_text("Prompts")
        await ana.composer.press_sequentially("/tests__g")
        await expect(ana.page.get_by_role("option", name="/tests__greet Say hello.")).to_be_visible()
    await ana.page.get_by_role("option", name="/tests__greet Say hello.").click()
    await expect(ana.page.locator("#notices")).to_contain_text("The MCP server “tests” isn’t available now.")
    ana.ignore_refusals()


async def test_images_and_progress_of_a_call_are_shown_to_all(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-16: all users see the image of a call, whose file can be downloaded, and the progress of a slow call.

    The progress is not a live region: screen readers would read each of its steps, twice a second.
    """
    bo = await invited(ana, browser, "Bo")
    await offered(ana, model, "example__draw_chart")
    model.script(
        asking(("example__draw_chart", {"values": [1, 2, 3]})),
        asking(("example__count_slowly", {"to": 4})),
        reply("Done."),
    )
    await ana.say("Draw and count")
    progress = "() => document.querySelector('.tool-progress:not([role])')?.textContent.includes('Counted to')"
    await asyncio.gather(*(shows_briefly(person.page, progress) for person in (ana, bo)))
    for person in (ana, bo):
        image = person.page.locator(".tool-files img")
        await expect(image).to_have_js_property("naturalWidth", 96)
    await expect(ana.answers.last).to_contain_text("Done.")
    await expect(ana.page.locator(".tool-progress")).to_have_count(0)
    async with ana.page.expect_download() as download:
        await ana.page.get_by_role("link", name="draw_chart-1.png").last.click()
    assert (await download.value).suggested_filename == "draw_chart-1.png"
    for size in (PHONE, DESKTOP):  # the image is below its call, and the name of its file is in one line
        await ana.page.set_viewport_size(size)
        call, file = [
            await ana.page.locator(".tool_group", has=ana.page.locator("img")).locator(each).bounding_box()
            for each in (".tool", ".tool-file")
        ]
        assert call is not None
        assert file is not None
        assert file["height"] < 30
        assert file["x"] - call["x"] < 20
        assert file["y"] > call["y"] + call["height"]
    assert await violations(ana.page) == []
    await bo.page.reload()
    await expect(bo.page.locator(".tool-files img")).to_have_js_property("naturalWidth", 96)
    bo.check_console()


async def test_owner_signs_in_to_a_server_and_the_agent_uses_it(ana: Person, model: WireServer) -> None:
    """UI-19: Connect leads to the authorization server and back; the page says who connected, and can disconnect."""
    session = ana.page.url
    page = await open_servers(ana)
    with serving(sys.executable, str(AUTH_SERVER)) as address:
        add = page.get_by_role("region", name="Add an MCP server")
        await add.get_by_label("Name").fill("notes")
        await add.get_by_label("Address").fill(address)
        await add.get_by_role("button", name="Add server").click()
        row = page.locator(".mcp-servers > li")
        await row.get_by_role("button", name="Connect · notes").click()
        await expect(row.get_by_role("status")).to_contain_text("Sign in at 127.0.0.1")
        assert await violations(page) == []
        await row.get_by_role("link", name="Continue to 127.0.0.1").click()
        await expect(page.get_by_role("heading")).to_have_text("Let Parley read your notes?")
        await page.get_by_role("link", name="Allow").click()
        await expect(page.locator("#toasts")).to_contain_text("“notes” is connected.")
        await expect(row).to_contain_text("Connected by Admin")
        assert await violations(page) == []
        await row.get_by_role("button", name="Test connection").click()
        await expect(row.get_by_role("status")).to_contain_text("Read a note.")
        await page.goto(session)
        await ana.sees_connection("Connected")
        model.script(asking(("notes__read_note", {"name": "second"})), reply("I have read it."))
        await ana.say("Read the second note")
        await expect(ana.answers.last).to_contain_text("I have read it.")
        assert "the second note" in str(model.requests[-1].body["messages"])
        page = await open_servers(ana)
        await row.get_by_role("button", name="Disconnect").click()
        await expect(page.locator("#toasts")).to_contain_text("“notes” disconnected.")
        await expect(row).not_to_contain_text("Connected by Admin")


async def test_prompts_that_change_while_they_are_fetched_are_fetched_again(ana: Person) -> None:
    """UI-17: if the session changes while its prompts are fetched, they are fetched again."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    await ana.page.route("**/prompts", hold, times=1)
    async with ana.page.expect_request("**/prompts"):
        await ana.composer.press_sequentially("/t")
    main = ana.page.locator("#main")
    await main.evaluate("page => page.addEventListener('parley:session-changed', () => { page.dataset.changed = '' })")
    assert (await ask_api(ana, "PATCH", data={"title": "Prompts"})).ok
    await expect(main).to_have_attribute("data-changed", "")
    early = {"name": "tests__early", "title": "Early", "arguments": []}
    async with ana.page.expect_request("**/prompts"):
        await held.pop().fulfill(json={"prompts": [early]})
