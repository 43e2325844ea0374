"""Webhooks in a real browser: from the address that an owner enters to the requests that are sent to it (HOOK-01)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import CONFIG
from tests.browser.person import Person
from tests.browser.test_accessibility import violations
from tests.browser.test_chat import invited, reply
from tests.support.server import Server
from tests.support.shared_server import SharedServers
from tests.support.webhook_receiver import receiving
from tests.wire.server import WireServer


@pytest_asyncio.fixture(loop_scope="session")
async def server(servers: SharedServers) -> AsyncIterator[Server]:
    """A server whose webhooks may have local addresses."""
    async with servers.use(CONFIG, LEASE_SECONDS="2", WEBHOOK_INTERNAL_HOSTS="127.0.0.1") as server:
        yield server


async def test_owner_adds_a_webhook(ana: Person, model: WireServer) -> None:
    """HOOK-01, HOOK-06: an owner sees a secret once, sends a test, sends a delivery again, and undoes a removal."""
    session, page = ana.page.url, ana.page
    with receiving() as receiver:
        await ana.choose_in_account_menu("Workspace settings")
        await page.get_by_role("link", name="Manage webhooks").click()
        add = page.get_by_role("region", name="Add a webhook")
        await expect(add).to_be_visible()
        webhooks = page.url
        await add.get_by_label("Address").fill("https://10.0.0.1/")
        await add.get_by_role("button", name="Add webhook").click()
        await expect(add.get_by_role("alert")).to_contain_text("WEBHOOK_INTERNAL_HOSTS")
        await expect(add.get_by_role("alert")).to_be_focused()
        ana.ignore_refusals()
        await add.get_by_label("Address").fill(f"{receiver.url}/hook")
        await add.get_by_role("button", name="Add webhook").click()
        secret = await page.get_by_label("Signing secret").input_value()
        assert secret.startswith("whsec_")
        assert await violations(page) == []

        row = page.locator(".webhooks > li")
        receiver.statuses.append(503)
        await row.get_by_role("button", name="Send a test").click()
        await expect(row.get_by_role("status")).to_contain_text("the address answered 503")
        await expect(row.get_by_role("row", name="Test")).to_contain_text("Failed")
        assert secret not in await page.content()
        test = await asyncio.to_thread(receiver.take)
        assert (test.type, test.is_signed_with(secret)) == ("webhook.test", True)

        await page.goto(session)
        await ana.sees_connection("Connected")
        model.script(reply("Fine."))
        await ana.composer.fill("Hi")
        await page.keyboard.press("Enter")
        finished = await asyncio.to_thread(receiver.take)
        assert (finished.type, finished.is_signed_with(secret)) == ("turn.finished", True)
        assert finished.data()["session_id"] in session

        await page.goto(webhooks)
        async with asyncio.timeout(30):  # the receiver has the request before its answer is stored
            while await row.locator("tr", has_text="Pending").count():
                await page.reload()
        await row.locator("summary", has_text="Recent deliveries").click()
        delivery = row.get_by_role("row", name="An agent finished a turn")
        await expect(delivery).to_contain_text("Delivered")
        await expect(delivery).to_contain_text("204")
        assert await violations(page) == []
        await delivery.get_by_role("button", name="Send again").click()
        await expect(delivery).to_contain_text("2 attempts")
        again = await asyncio.to_thread(receiver.take)
        assert again.id == finished.id

        await row.locator("summary", has_text="Remove").click()
        await row.get_by_role("button", name="Remove webhook").click()
        await expect(row).to_have_count(0)
        await page.locator("#toasts").get_by_role("button", name="Undo").click()
        await expect(row).to_contain_text(f"{receiver.url}/hook")
        await row.locator("summary", has_text="Edit").click()
        await row.get_by_label("On", exact=True).uncheck()
        await row.get_by_role("button", name="Save").click()
        await expect(row).to_contain_text("turned off")
        await row.get_by_role("button", name="Turn on").click()
        await expect(row).not_to_contain_text("turned off")


async def test_members_have_no_page_of_webhooks(ana: Person, browser: Browser) -> None:
    """HOOK-01, LIVE-06: only owners and admins manage webhooks."""
    bo = await invited(ana, browser, "Bo", member=True)
    await bo.choose_in_account_menu("Workspace settings")
    await expect(bo.page.get_by_role("heading", name="Members")).to_be_visible()
    await expect(bo.page.get_by_role("link", name="Manage webhooks")).to_have_count(0)
    bo.check_console()
