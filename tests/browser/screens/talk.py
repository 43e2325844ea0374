"""Screens of a session: messages, streaming answers, and what users may do."""

from __future__ import annotations

from playwright.async_api import Page, WebSocketRoute, expect

from tests.browser.screens import Showcase, begin, beside, enter, enter_small, say, screen, speak


@screen
async def session(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.session)


@screen
async def session_start(page: Page, showcase: Showcase) -> None:
    await session(page, showcase)
    first = page.locator("article.user", has_text="Look at the metrics")
    while not await first.count():
        await page.locator("#log").evaluate("log => { log.scrollTop = 0 }")
        await page.locator("#older:not([hx-get]), #older[hx-get]").first.wait_for(state="attached")
    await first.scroll_into_view_if_needed()


@screen
async def session_table(page: Page, showcase: Showcase) -> None:
    """A table, two formulas, a quotation and a list."""
    await session_start(page, showcase)
    await page.locator("table").first.scroll_into_view_if_needed()


@screen
async def session_code(page: Page, showcase: Showcase) -> None:
    """Code of three hundred lines."""
    await session(page, showcase)
    await page.locator("article.assistant pre", has_text="step_70").scroll_into_view_if_needed()


@screen
async def session_tools(page: Page, showcase: Showcase) -> None:
    """An open tool card and a terminal in view."""
    await session_start(page, showcase)
    card = page.locator("article.tool_group", has_text="crontab").first
    await card.locator("summary").click()
    await card.scroll_into_view_if_needed()


@screen
async def session_reasoning(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)
    await page.locator("article.reasoning summary").click()


@screen
async def session_small(page: Page, showcase: Showcase) -> None:
    await enter_small(page, showcase)


@screen
async def session_simplified(page: Page, showcase: Showcase) -> None:
    await speak(page, showcase, "zh-hans")
    await session(page, showcase)


@screen
async def session_traditional(page: Page, showcase: Showcase) -> None:
    await speak(page, showcase, "zh-hant")
    await session(page, showcase)


@screen
async def session_empty(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.empty)


@screen
async def session_read_only(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.read_only)


@screen
async def session_archived(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.archived)


@screen
async def session_offline(page: Page, showcase: Showcase) -> None:
    """A page without a connection, with a message that waits to be sent."""
    line: list[WebSocketRoute] = []

    async def lead(route: WebSocketRoute) -> None:
        if line:
            await route.close()
        else:
            line.append(route)
            route.connect_to_server()

    await page.route_web_socket("**/ws/**", lead)
    await enter_small(page, showcase)
    await line[0].close()
    await page.context.set_offline(True)
    await expect(page.locator("#connection")).not_to_have_attribute("data-state", "connected")
    await say(page, "I am in a tunnel.")
    await expect(page.locator("#queue article")).to_be_visible()


@screen
async def session_lost(page: Page, showcase: Showcase) -> None:
    """A session to which the user has lost access while it was open."""
    owner = await beside(page, showcase, "ana")
    await begin(owner, "Between us")
    await owner.get_by_role("button", name="Share", exact=True).click()
    await owner.get_by_role("radio", name="梅雪").check()
    await owner.get_by_role("button", name="Add", exact=True).click()
    guest = owner.get_by_role("button", name="Remove 梅雪")
    await guest.wait_for()
    name, value = showcase.cookies["mei"].split("=", 1)
    await page.context.add_cookies([{"name": name, "value": value, "url": showcase.address}])
    await enter(page, owner.url)
    await guest.click()
    await expect(page.locator("#connection")).to_contain_text("no longer have access")


@screen
async def streaming(page: Page, showcase: Showcase) -> None:
    await begin(page, "slow")
    await expect(page.locator("article.assistant")).to_contain_text("This answer takes")


@screen
async def queued(page: Page, showcase: Showcase) -> None:
    await streaming(page, showcase)
    await say(page, "And then, in the next answer, please say what the three of us should do about the runbook")
    await say(page, "然后呢？")
    await expect(page.locator("#queue article:not(.pending)")).to_have_count(2)


@screen
async def queued_edit(page: Page, showcase: Showcase) -> None:
    await queued(page, showcase)
    await page.get_by_role("button", name="Edit the queued message").first.click()
    await expect(page.get_by_role("textbox", name="Queued message")).to_be_focused()


@screen
async def only_mentions(page: Page, showcase: Showcase) -> None:
    """The composer of a session whose agent answers only mentions and has no tools."""
    await begin(page, "Among ourselves")
    for choice in ("Answer only @mentions", "Chat without tools"):
        await page.locator("#more").click()
        await page.get_by_role("menuitem", name="Agent behavior").click()
        await page.get_by_role("menuitemradio", name=choice).click()
    await expect(page.get_by_role("button", name="Only @agent")).to_be_visible()
    await expect(page.get_by_role("button", name="No tools")).to_be_visible()


@screen
async def notice(page: Page, showcase: Showcase) -> None:
    """A notice of a refusal above the composer."""
    await enter(page, showcase.scratch)
    await say(page, "Bad \0 text")
    await expect(page.locator("#notices")).to_contain_text("NUL")


@screen
async def typing(page: Page, showcase: Showcase) -> None:
    """The line below the composer while two other users are typing."""
    await enter_small(page, showcase)
    others = [await beside(page, showcase, name) for name in ("mei", "jonas")]
    for other in others:
        await enter(other, showcase.small)
    for other in others:  # at the same time, because the line disappears a few seconds after the last key
        await other.locator("#text").press_sequentially("Hm")
    await expect(page.locator("#typing")).to_contain_text("are typing")


@screen
async def presence(page: Page, showcase: Showcase) -> None:
    await typing(page, showcase)
    await page.locator("#presence button").click()
    await expect(page.get_by_role("dialog", name="Online")).to_be_visible()
