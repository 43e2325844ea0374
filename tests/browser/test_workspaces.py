"""Several workspaces, and the switcher above the list by mouse, keyboard, palette and touch."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from urllib.parse import urljoin

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_notifications import BROWSER, has_shown
from tests.browser.test_session_list import begin
from tests.support.server import Server
from tests.wire.server import WireServer

OPS = "Ops 运维"


def all_join(server: Server, name: str) -> None:
    """Create a workspace with all users as members, as staff would in the admin."""
    with closing(sqlite3.connect(server.data / "parley.sqlite3")) as database, database:
        made = database.execute("INSERT INTO chat_workspace (name, created_at) VALUES (?, datetime())", [name])
        database.execute(
            "INSERT INTO chat_membership (workspace_id, user_id, role, created_at) "
            "SELECT ?, id, 'member', datetime() FROM chat_user",
            [made.lastrowid],
        )


def all_leave(server: Server, name: str) -> None:
    with closing(sqlite3.connect(server.data / "parley.sqlite3")) as database, database:
        named = "SELECT id FROM chat_workspace WHERE name = ?"
        database.execute(f"DELETE FROM chat_membership WHERE workspace_id IN ({named})", [name])  # noqa: S608  # our own


def switcher(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("^Workspace "))


def titles(page: Page) -> Locator:
    return page.locator(".session-title")


async def refresh_list(page: Page) -> None:
    """Make the session list check for updates."""
    await page.evaluate("document.dispatchEvent(new Event('parley:list-changed'))")


async def go_by_palette(page: Page, name: str) -> None:
    await page.wait_for_load_state()  # before, the scripts do not know the key
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Search sessions, messages and actions").fill(f"workspace {name}")
    await expect(page.get_by_role("option", name=f"Switch to workspace {name}")).to_have_attribute(
        "aria-selected", "true"
    )
    await page.keyboard.press("Enter")
    await expect(switcher(page)).to_contain_text(name)


async def test_each_tab_shows_its_own_workspace(ana: Person, server: Server, model: WireServer) -> None:
    """With one workspace, there is no switcher; with a second one, mouse, keys and palette switch to it.

    New sessions are created in it, links lead into it, and each tab keeps its own list. A user who loses a workspace
    can continue from its open home page, in another one.
    """
    page, first = ana.page, ana.page.url
    await expect(titles(page)).to_have_text(["New session"])
    await expect(page.locator("#workspace-switch")).to_be_hidden()
    all_join(server, OPS)
    await refresh_list(page)
    await expect(switcher(page)).to_contain_text("Home")
    await ana.composer.fill("Half a thought")
    await switcher(page).click()
    await expect(page.get_by_role("menuitemradio", checked=True)).to_have_text("Home")
    await page.get_by_role("menuitemradio", name=OPS).click()
    await expect(switcher(page)).to_contain_text(OPS)
    await expect(page.get_by_text("Your sessions and those shared with you")).to_be_visible()
    model.script(reply("Yes."))
    await begin(ana, "In ops")
    await expect(titles(page)).to_have_text(["In ops"])
    second = page.url

    tab = await page.context.new_page()
    await tab.goto(first)
    await expect(titles(tab)).to_have_text(["New session"])
    await expect(tab.get_by_role("textbox", name="Message", exact=True)).to_have_value("Half a thought")
    await refresh_list(page)
    await page.reload()
    await expect(titles(page)).to_have_text(["In ops"])
    await refresh_list(tab)
    async with tab.expect_response(lambda answer: "/session-list?" in answer.url):
        await refresh_list(tab)
    await expect(titles(tab)).to_have_text(["New session"])

    await switcher(tab).focus()
    await tab.keyboard.press("Enter")
    await expect(tab.get_by_role("menuitemradio", name="Home")).to_be_focused()
    await tab.keyboard.press("o")
    await tab.keyboard.press("Enter")
    await expect(titles(tab)).to_have_text(["In ops"])
    await go_by_palette(tab, "Home")
    await expect(titles(tab)).to_have_text(["New session"])
    await tab.goto(second)
    await expect(switcher(tab)).to_contain_text(OPS)
    await tab.goto(urljoin(second, "/"))
    await expect(titles(tab)).to_have_text(["In ops"])

    all_leave(server, OPS)
    await refresh_list(tab)
    await expect(switcher(tab)).to_be_hidden()
    await expect(titles(tab)).to_have_text(["In ops", "New session"])
    model.script(reply("Yes."))
    await tab.get_by_role("textbox", name="First message").fill("Begun all the same")
    await tab.keyboard.press("Enter")
    await expect(titles(tab)).to_have_text(["Begun all the same", "In ops", "New session"])


async def test_switcher_shows_changes_in_other_workspaces(
    ana: Person, server: Server, browser: Browser, model: WireServer
) -> None:
    """The switcher marks an agent's answer in another workspace for its owner.

    It also marks a newly shared session for another user, also on a phone.
    """
    bo = await invited(ana, browser, "Bo", member=True)
    all_join(server, OPS)
    await ana.page.goto(urljoin(ana.page.url, "/"))
    await go_by_palette(ana.page, OPS)
    gate = asyncio.Event()
    model.script(reply("Yes", gate=gate, rest=(".",)))
    await begin(ana, "In ops")
    session = ana.page.url
    await go_by_palette(ana.page, "Home")
    dot = ana.page.locator("#workspace-switch .unread")
    await expect(dot).to_be_hidden()
    gate.set()
    await expect(dot).to_be_visible()

    await refresh_list(bo.page)
    await expect(switcher(bo.page)).to_contain_text("Home")
    await expect(bo.page.locator("#workspace-switch .unread")).to_be_hidden()
    token = await ana.token()
    shared = await ana.page.request.post(
        f"{session}share/member",
        headers={"X-CSRFToken": token},
        form={"user": "bo", "role": "viewer"},
        max_retries=RETRIES,
    )
    assert shared.ok
    await expect(bo.page.locator("#workspace-switch .unread")).to_be_visible()
    bo.check_console()

    await ana.page.set_viewport_size({"width": 375, "height": 740})
    await ana.page.get_by_role("button", name="Open session list").click()
    await switcher(ana.page).click()
    await ana.page.get_by_role("menuitemradio", name=f"{OPS} · Unread").click()
    await ana.page.wait_for_url("**/workspaces/*/")
    await ana.page.get_by_role("button", name="Open session list").click()
    await expect(switcher(ana.page)).to_contain_text(OPS)
    await expect(dot).to_be_hidden()
    await ana.page.get_by_role("link", name="In ops").first.click()
    await expect(ana.answers.first).to_contain_text("Yes.")


@pytest.mark.parametrize("shows_archive", [False, True])
async def test_mention_in_another_workspace_is_notified_and_counted(
    ana: Person, server: Server, browser: Browser, model: WireServer, shows_archive: bool
) -> None:
    """LIVE-07: a page that shows another workspace notifies a mentioned user, and counts the session in its title.

    So does a page that shows the archive.
    """
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.page.keyboard.press("Escape")
    model.script(reply("Yes"), reply("Yes"))
    await ana.say("Lunch")
    await ana.sees_state("idle")
    await expect(bo.page.locator("[data-part=title]").first).to_have_text("Lunch")
    all_join(server, OPS)
    await bo.page.add_init_script(BROWSER)
    await bo.page.reload()
    await go_by_palette(bo.page, OPS)
    await bo.page.evaluate("document.documentElement.dataset.notify = 'yes'")
    await expect(bo.page).to_have_title("New session · Parley")
    if shows_archive:
        await bo.choose_in_account_menu("Archived sessions")
        await expect(bo.page.get_by_role("button", name="All sessions")).to_be_focused()
    await ana.say("Please, @bo, come")
    await expect(bo.page).to_have_title("(1) New session · Parley")
    await has_shown(bo, ["Lunch", "You were mentioned."])
    bo.check_console()
