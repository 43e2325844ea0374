"""Random actions of users on a whole session: its agents, forks, summaries, removed messages and deletion."""

from __future__ import annotations

from contextlib import suppress

from playwright.async_api import Error as PlaywrightError

from tests.browser.crowd import Crowd, Viewer
from tests.browser.crowd_at_pages import TEXTS, action, confirm, press
from tests.browser.crowd_beside import other

FOCUS = """(share) => {
  const found = [...document.querySelectorAll("#messages > article.message:not(.folded)")];
  found[Math.floor(share * found.length)]?.focus({ preventScroll: true });
}"""
# The time in ms in which another page opens.
OPENS = 10_000


@action(1.5)
async def cast(crowd: Crowd, viewer: Viewer) -> None:
    """Add an agent to the session in the panel, or remove one."""
    page = viewer.page
    if await page.evaluate("() => document.getElementById('panel').hidden"):
        await page.evaluate("() => document.getElementById('panel-button').click()")
    await page.evaluate("() => document.querySelector('#panel [data-tab=about]').click()")
    if crowd.chance.random() < 0.3:
        await press(page, "#panel [data-action=remove-agent]", crowd.chance)
        return
    await page.locator("#agent-to-add").select_option(crowd.chance.choice(["helper", "critic"]))
    await press(page, "#add-agent", crowd.chance)


@action(1)
async def suggestion(crowd: Crowd, viewer: Viewer) -> None:
    await press(viewer.page, "#messages [data-action=suggestions]", crowd.chance)
    name = crowd.chance.choice(["accept", "accept", "dismiss"])
    await press(viewer.page, f"#messages [data-action={name}-suggestion]", crowd.chance)
    await confirm(crowd, viewer)


@action(1)
async def summarize(crowd: Crowd, viewer: Viewer) -> None:
    """Summarize the session, or change, unfold or undo a summary."""
    page, chance = viewer.page, crowd.chance
    if not await page.locator("#messages > .summary").count():
        await page.locator("#text").fill("/compact")
        await page.locator("#text").press("Enter")
        await confirm(crowd, viewer)
        return
    match chance.randrange(3):
        case 0:
            await press(page, "#messages [data-action=undo-summary]", chance)
            await confirm(crowd, viewer)
        case 1:
            await press(page, "#messages [data-action=unfold-summary]", chance)
        case 2:
            await page.locator("#messages > .summary").last.focus()
            await page.keyboard.press("e")
            await page.locator("form.edit textarea").last.fill(f"Summary {chance.random():.3f}")
            await press(page, "form.edit [data-name=save]", chance)


@action(1.2)
async def delete_and_undo(crowd: Crowd, viewer: Viewer) -> None:
    await viewer.page.evaluate(FOCUS, crowd.chance.random())
    await viewer.page.keyboard.press("Delete")
    await confirm(crowd, viewer)
    for _ in range(crowd.chance.randrange(3)):
        await other(crowd, viewer)
    await press(viewer.page, ".toast-action", crowd.chance)


@action(1)
async def restore_removed(crowd: Crowd, viewer: Viewer) -> None:
    """Restore something in the dialog of removed messages."""
    field = viewer.page.locator("#text")
    await field.fill("/removed")
    await field.press("Enter")
    dialog = viewer.page.locator("dialog[open]")
    await dialog.wait_for(timeout=3000)
    await press(viewer.page, "dialog[open] [data-action^=restore-]", crowd.chance)
    await confirm(crowd, viewer)
    await other(crowd, viewer)
    await viewer.page.keyboard.press("Escape")


@action(0.8)
async def fork_and_return(crowd: Crowd, viewer: Viewer) -> None:
    """Fork at a message, perhaps write in the fork, and return."""
    page = viewer.page
    await page.evaluate(FOCUS, crowd.chance.random())
    await page.keyboard.press("f")
    try:
        await page.wait_for_url(lambda url: not url.startswith(viewer.address), timeout=OPENS)
        await other(crowd, viewer)
        if crowd.chance.random() < 0.5:
            await page.locator("#text").fill(crowd.chance.choice(TEXTS))
            await page.locator("#text").press("Enter")
        if crowd.chance.random() < 0.7:
            await page.go_back(timeout=OPENS)
    finally:
        if not page.url.startswith(viewer.address):
            await viewer.open()


@action(0.4)
async def delete_session_and_undo(crowd: Crowd, _viewer: Viewer) -> None:
    """Delete the session as its owner, and restore it. Then the other users open it again."""
    owner = crowd.viewers[0]
    try:
        await press(owner.page, ".top [data-action=more]", crowd.chance)
        await owner.page.locator(".popover [role=menuitem]").last.click()
        await confirm(crowd, owner)
        await owner.page.wait_for_url(lambda url: not url.startswith(owner.address), timeout=OPENS)
        crowd.note("  deleted")
        await other(crowd, owner)
        await owner.page.locator(".toast-action").first.click(timeout=OPENS)
        await owner.page.wait_for_url(owner.address, timeout=OPENS)
    finally:
        await undelete(crowd)
        for each in crowd.viewers:
            with suppress(PlaywrightError):
                await each.open()


async def undelete(crowd: Crowd) -> None:
    """Restore the session if it is still deleted."""
    query = "select deleted_at from chat_session where id = ? and deleted_at is not null"
    if crowd.servers.rows(query, crowd.session):
        await crowd.request("POST", "/undelete", {})
