"""The users of a crowd: how they join, and what they do with their account, their browser and their roles."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from playwright.async_api import Browser, BrowserContext

from agents.messages import Json
from tests.browser.crowd import Crowd, Viewer
from tests.browser.crowd_at_pages import action, press
from tests.browser.crowd_at_sessions import OPENS
from tests.browser.crowd_beside import other
from tests.browser.person import RETRIES, WINDOW, Person
from tests.browser.test_chat import invited
from tests.browser.test_retry import PHONE

ON_A_PHONE: Json = {**WINDOW, "viewport": PHONE, "has_touch": True, "is_mobile": True}
LANGUAGES = ("en", "zh-hans", "zh-hant")


async def gather(ana: Person, browser: Browser, origins: Sequence[str]) -> list[Viewer]:
    """Open the session on two pages of its owner, two of an editor's phone, and the Chinese page of a viewer.

    `origins` are the addresses of the web servers, which the pages use in turn.
    """
    bo = await invited(ana, browser, "Bo", member=True)
    await ana.page.reload()
    cy = await invited(ana, browser, "Cy")
    await give_role(ana, cy, "viewer")
    people = [("ana", ana, WINDOW), ("bo", bo, ON_A_PHONE), ("cy", cy, WINDOW)]
    contexts = {name: await again(browser, person, look) for name, person, look in people}
    await contexts["cy"].add_cookies([{"name": "django_language", "value": "zh-hans", "url": origins[0]}])
    path, viewers = urlsplit(ana.page.url).path, []
    for number, name in enumerate(("ana", "ana, again", "bo", "bo, again", "cy")):
        page = await contexts[name.split(",")[0]].new_page()
        viewers.append(Viewer(name, page, origins[number % len(origins)] + path))
        await viewers[-1].begin()
    return viewers


async def give_role(host: Person, person: Person, role: str) -> None:
    number = await person.page.locator("main").get_attribute("data-viewer-id")
    members = host.page.url.replace("/sessions/", "/api/sessions/") + f"members/{number}"
    headers = {"X-CSRFToken": await host.token()}
    assert (await host.page.request.put(members, data={"role": role}, headers=headers, max_retries=RETRIES)).ok


async def again(browser: Browser, person: Person, look: Json) -> BrowserContext:
    """Return a new context with the same login, whose pages can be routed before they load."""
    return await browser.new_context(**{**look, "storage_state": await person.page.context.storage_state()})


@action(0.8)
async def change_theme(crowd: Crowd, viewer: Viewer) -> None:
    """Choose a theme in the account menu. The user's other pages in the browser follow."""
    await viewer.page.evaluate("() => document.getElementById('account').click()")
    await viewer.page.locator(".popover [role=menuitemradio]").first.wait_for()
    await press(viewer.page, ".popover [role=menuitemradio]", crowd.chance)


@action(0.5)
async def change_language(crowd: Crowd, viewer: Viewer) -> None:
    """Choose a language in the settings on another tab, and then reload the user's pages."""
    language = crowd.chance.choice(LANGUAGES)
    crowd.note(f"  {language}")
    tab = await viewer.page.context.new_page()
    try:
        await tab.goto(urljoin(viewer.address, "/settings/"), timeout=OPENS)
        await tab.locator("select[name=language]").select_option(language)
        await tab.locator(f"html[lang={language}]").wait_for(timeout=OPENS)
        await other(crowd, viewer)
    finally:
        await tab.close()
        for each in crowd.mates(viewer):
            await each.open()


@action(0.6)
async def sign_out_elsewhere(crowd: Crowd, viewer: Viewer) -> None:
    """Sign out in another tab, and sign in again on the pages. The owner has no password and does not do this."""
    if viewer in crowd.mates(crowd.viewers[0]):
        return
    tab = await viewer.page.context.new_page()
    try:
        await tab.goto(viewer.address, timeout=OPENS)
        await tab.evaluate("() => document.getElementById('sign-out').requestSubmit()")
        await press(tab, "dialog[open].confirm [value=confirm]", crowd.chance)
        await tab.wait_for_selector("[name=password]", timeout=OPENS)
        await other(crowd, viewer)
        await viewer.page.wait_for_selector("[name=password]", timeout=OPENS)
        crowd.note("  signed out")
    finally:
        await tab.close()
        for each in crowd.mates(viewer):
            await each.open()


@action(0.8)
async def choose_role(crowd: Crowd, _viewer: Viewer) -> None:
    """Change a role in the owner's share dialog, while another user acts."""
    owner = crowd.viewers[0]
    await press(owner.page, ".share-button", crowd.chance)
    choices = owner.page.locator("#share-body .people select[name=role]")
    try:
        await choices.first.wait_for(timeout=3000)
        choice = choices.nth(crowd.chance.randrange(await choices.count()))
        await choice.select_option(crowd.chance.choice(["viewer", "editor", "editor"]))
        await other(crowd, owner)
    finally:
        await owner.page.keyboard.press("Escape")
