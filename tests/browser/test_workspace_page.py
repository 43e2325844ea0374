"""The settings of a workspace in a real browser: members, roles, and the details that owners and admins see."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import RETRIES, Person
from tests.browser.test_chat import invited, reply
from tests.browser.test_questions import SUM, asking, card
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.wire.server import WireServer


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose agent may calculate without an approval, unless a rule of the workspace requires it."""
    async with servers.use(CONFIG + 'tools = ["calculator"]\n', LEASE_SECONDS="2") as server:
        yield server


async def open_workspace(person: Person) -> Page:
    await person.choose_in_account_menu("Workspace settings")
    await expect(person.page.get_by_role("heading", name="Members")).to_be_visible()
    return person.page


async def change(page: Page, name: str, role: str) -> None:
    await page.locator("summary", has_text=name).press("Enter")
    await page.get_by_label(f"Role · {name}").select_option(label=role)
    await page.get_by_role("button", name="Save role").locator("visible=true").press("Enter")


async def test_owner_changes_roles_and_undoes_a_removal(ana: Person, browser: Browser) -> None:
    """LIVE-06: a guest becomes an admin, manages others but no owner, and is removed and restored."""
    gil = await invited(ana, browser, "Gil")
    session = gil.page.url
    page = await open_workspace(ana)
    await change(page, "Gil", "Admin")
    await expect(page.locator("#toasts")).to_contain_text("The role of Gil is now: Admin")
    await expect(page.locator(".members li", has_text="Gil")).to_contain_text("Admin")

    await expect(gil.page.locator("main")).to_have_attribute("data-workspace-role", "admin")  # the page has reloaded
    await gil.page.goto(urljoin(session, "/"))
    theirs = await open_workspace(gil)
    await expect(theirs.get_by_role("heading", name="Usage")).to_be_visible()
    await expect(theirs.locator("summary")).to_have_count(1)  # their own: the owner is out of reach
    # The last owner cannot leave.
    await page.locator(".members li", has_text="(you)").locator("summary").click()
    await page.get_by_role("button", name="Leave workspace").click()
    await expect(page.get_by_role("alert")).to_contain_text("A workspace needs an owner.")
    ana.ignore_refusals()

    await page.locator(".members li", has_text="Gil").locator("summary").click()
    await page.get_by_role("button", name="Remove from workspace").click()
    await expect(page.locator("#toasts")).to_contain_text("Gil was removed.")
    assert (await theirs.request.get(session, max_retries=RETRIES)).status == 404
    await page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(page.locator("#toasts")).to_contain_text("Gil is a member again.")
    assert (await theirs.request.get(session, max_retries=RETRIES)).status == 200
    gil.check_console()


async def test_member_sees_the_members_and_leaves(ana: Person, browser: Browser) -> None:
    """LIVE-06: a member sees the members, cannot change them, and can leave."""
    gil = await invited(ana, browser, "Gil")
    page = await open_workspace(ana)
    await change(page, "Gil", "Member")
    await expect(page.locator("#toasts")).to_contain_text("The role of Gil is now: Member")
    await expect(gil.page.locator("main")).to_have_attribute("data-workspace-role", "member")  # the page has reloaded
    await gil.page.goto(urljoin(gil.page.url, "/"))
    theirs = await open_workspace(gil)
    await expect(theirs.get_by_role("heading", name="Usage")).to_have_count(0)
    await theirs.locator("summary", has_text="Gil").click()
    await theirs.get_by_role("button", name="Leave workspace").click()
    await expect(theirs.get_by_role("heading", name="Welcome, Gil")).to_be_visible()
    gil.check_console()


async def test_two_users_approve_a_call_by_a_rule_of_the_workspace(
    ana: Person, model: WireServer, browser: Browser
) -> None:
    """UI-20: the owner makes a rule that needs two approvals.

    Two browsers show who has approved and how many are missing. Then the call runs.
    """
    bo = await invited(ana, browser, "Bo")
    session = ana.page.url
    page = await open_workspace(ana)
    await page.get_by_label("Tool, or tool with a pattern").fill("calculator(6*)")
    await page.get_by_label("How many people").fill("2")
    await page.get_by_role("button", name="Add rule").click()
    await expect(page.locator(".rules li")).to_contain_text("calculator(6*)")
    await expect(page.locator(".rules li")).to_contain_text("Ask · 2 approvals")
    await page.locator(".rules li").get_by_role("button", name="Remove").click()
    await page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(page.locator(".rules li")).to_contain_text("Ask · 2 approvals")

    await page.goto(session)
    await ana.sees_connection("Connected")
    model.script(asking(SUM), reply("42 it is"))
    await ana.say("Go")
    mine, theirs = (card(person, "wants to run calculator") for person in (ana, bo))
    for question in (mine, theirs):
        await expect(question).to_contain_text("2 approvals needed")
    await theirs.get_by_role("button", name="Refuse…").click()
    await theirs.get_by_label("What should the agent know? (optional)").fill("Not so fast")
    await expect(ana.page).to_have_title(re.compile(r"^\(1\) "))
    await mine.get_by_role("button", name="Edit arguments").click()
    await mine.get_by_label("expression").fill("6 * 7")
    await mine.get_by_role("button", name="Allow with these arguments").click()
    await expect(theirs).to_contain_text("1 more approval needed")
    await expect(theirs).to_contain_text("Admin approved this")
    await expect(mine.get_by_label("expression")).to_be_hidden()
    for reloads in (False, True):
        if reloads:
            await ana.page.reload()
        await expect(ana.page.locator("#status")).to_have_text(
            re.compile("^\\s*Waiting for others\\s*$"), use_inner_text=True
        )
        await expect(ana.page).to_have_title(re.compile(r"^[^(]"))
        await expect(ana.page.locator(".session-row[data-waiting=yes]")).to_have_count(0)
    await expect(bo.page.locator("#status")).to_contain_text("Waiting for your answer", use_inner_text=True)
    await expect(bo.page).to_have_title(re.compile(r"^\(1\) "))
    await expect(mine.get_by_text("You approved this. Others must approve it, too.")).to_be_visible()
    await expect(mine.get_by_role("button", name="Approve", exact=True)).to_be_hidden()
    await expect(theirs.get_by_text("You approved this.")).to_be_hidden()
    await expect(theirs.get_by_label("What should the agent know? (optional)")).to_have_value("Not so fast")
    await theirs.get_by_role("button", name="Cancel").locator("visible=true").click()
    await theirs.get_by_role("button", name="Approve").click()
    await expect(ana.answers.last).to_contain_text("42 it is")
    await expect(ana.page.locator(".decision")).to_contain_text("Approved by Admin, Bo")
    bo.check_console()


async def test_call_for_owners_cannot_be_approved_by_admins(ana: Person, model: WireServer, browser: Browser) -> None:
    """UI-20: admins have no button for a call that only owners can approve, and the card says who can."""
    bo = await invited(ana, browser, "Bo")
    session = ana.page.url
    page = await open_workspace(ana)
    await change(page, "Bo", "Admin")
    await expect(page.locator("#toasts")).to_contain_text("Bo")
    await page.get_by_label("Tool, or tool with a pattern").fill("calculator")
    await page.get_by_label("Who can approve").select_option(label="Owners")
    await page.get_by_role("button", name="Add rule").click()
    await expect(page.locator(".rules li")).to_contain_text("calculator")
    await page.goto(session)
    await ana.sees_connection("Connected")
    await bo.page.reload()
    await bo.sees_connection("Connected")
    model.script(asking(SUM), reply("42 it is"))
    await ana.say("Go")
    mine, theirs = (card(person, "wants to run calculator") for person in (ana, bo))
    await expect(theirs.get_by_text("Only owners of the workspace can approve this.")).to_be_visible()
    await expect(theirs.get_by_role("button", name="Approve", exact=True)).to_be_hidden()
    waits = re.compile("^\\s*Waiting for others\\s*$")
    await expect(bo.page.locator("#status")).to_have_text(waits, use_inner_text=True)
    await expect(theirs.locator(".question-waits").locator("visible=true")).to_have_text(waits, use_inner_text=True)
    await expect(bo.page.locator(".session-row[data-waiting=yes]")).to_have_count(0)
    await expect(ana.page.locator(".session-row[data-waiting=yes]")).to_have_count(1)
    await expect(ana.page.locator("#status")).to_contain_text("Waiting for your answer", use_inner_text=True)
    await expect(mine).to_contain_text("Approval of an owner needed")
    await mine.get_by_role("button", name="Approve", exact=True).click()
    await expect(ana.answers.last).to_contain_text("42 it is")
    await expect(ana.page.locator(".decision")).to_contain_text("Approved by Admin")
    bo.check_console()
