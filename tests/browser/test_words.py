"""UI-13: a Chinese page contains no English, neither when it is loaded nor in updates."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.gallery import SCREENS, Showcase, visit
from tests.browser.person import shows_briefly
from tests.support.showcase import PEOPLE

# Elements with text of users, models and tools.
THEIRS = (
    "[data-body], .plain, .tool, .terminal, .source, code, kbd, pre, .who, .name, .session-link, .recent, .title-text, "
    "[data-part=title], [data-part=model], [data-part=presence], .attachments, option, bdi, body [lang], textarea, "
    "#people, .face, .model-name, .brand, title"
)
# Names that are the same in all languages.
NAMES = {"Parley", "Token", "Markdown", "Enter", "Shift", "Ctrl", "Esc", "JavaScript", "PDF", "API", "WebP", "JPEG"}
WORDS = """
(theirs) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
    if (element.closest(`${theirs}, script, style, template, #words`)) continue;
    if (node.nodeType === Node.TEXT_NODE) {
      if (element.checkVisibility() || element.closest(".sr-only")) found.push(node.data);
    } else for (const name of ["aria-label", "title", "placeholder", "alt"]) {
      if (element.hasAttribute(name) && element.checkVisibility()) found.push(element.getAttribute(name));
    }
  }
  return found;
}
"""


async def english(page: Page, showcase: Showcase) -> set[str]:
    """Return the pieces of text with English words in them."""
    texts: list[str] = await page.evaluate(WORDS, THEIRS)
    # The text in the document, because elements that are scrolled out of view have no inner text.
    titles = await page.locator(".session-title").all_text_contents()
    known = [*PEOPLE.values(), "claude-sonnet-4-6", "demo", "admin", "Assistant", *titles, "Ana", "read_file"]
    theirs = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))))
    return {text.strip() for text in texts if set(re.findall(r"[A-Za-z]{3,}", theirs.sub("", text))) - NAMES}


@pytest.mark.parametrize(("language", "spoken"), [("zh-hans", "共享"), ("zh-hant", "分享")])
async def test_chinese_pages_contain_no_english(
    browser: Browser, showcase: Showcase, language: str, spoken: str
) -> None:
    """UI-13: texts, names of controls, titles and placeholders of the main screens are in Chinese."""
    found: list[str] = []
    for name in ("home", "session", "session-empty", "session-tools", "not-found"):
        page = await visit(browser, showcase)
        await page.context.add_cookies([{"name": "django_language", "value": language, "url": showcase.address}])
        await SCREENS[name](page, showcase)
        await expect(page.locator("html")).to_have_attribute("lang", re.compile(language, re.IGNORECASE))
        found += [f"{name}: {text}" for text in await english(page, showcase)]
        if name == "session":
            await page.get_by_role("button", name=spoken, exact=True).click()
            await expect(page.get_by_role("dialog")).to_contain_text("Priya")
            found += [f"share: {text}" for text in await english(page, showcase)]
        await page.context.close()
    assert not found, "\n".join(sorted(found))


async def test_two_users_of_a_session_have_their_own_languages(browser: Browser, showcase: Showcase) -> None:
    """UI-13, UI-07, LIVE-01: two users get the same status line and queue in their own languages."""
    english, chinese = await visit(browser, showcase), await visit(browser, showcase, who="mei")
    await chinese.context.add_cookies([{"name": "django_language", "value": "zh-hans", "url": showcase.address}])
    for page in (english, chinese):
        await SCREENS["session"](page, showcase)
    composer = english.get_by_role("textbox", name="Message", exact=True)
    await composer.fill("slow")
    status = "words => document.getElementById('status').textContent.includes(words)"
    async with asyncio.TaskGroup() as looks:
        for page, words in ((english, "Thinking…"), (chinese, "思考中…")):
            looks.create_task(shows_briefly(page, status, words))
        await composer.press("Enter")
    await composer.fill("and then?")
    await composer.press("Enter")
    await expect(english.get_by_role("article", name="Queued by Ana Kovač")).to_be_visible()
    await expect(chinese.get_by_role("article", name="Ana Kovač 的排队消息")).to_be_visible()
    await english.context.close()
    await chinese.context.close()
