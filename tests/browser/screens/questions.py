"""Screens of questions of an agent: every kind waiting and answered, and the forms in their cards."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.screens import Showcase, enter, open_sidebar, screen, sign_in_as, speak

# While the page is following the end, content that gets its real height scrolls back.
SCROLL = """async (card) => {
  do {
    card.scrollIntoView({ block: "start" });
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  } while (card.getBoundingClientRect().bottom < 0 || card.getBoundingClientRect().top > innerHeight);
}"""


async def at(page: Page, showcase: Showcase, kind: str, *, number: int = 0) -> None:
    """Open the waiting session at a question of this kind."""
    await enter(page, showcase.waiting)
    card = page.locator(f".question[data-kind={kind}]").nth(number)
    await card.evaluate(SCROLL)
    await expect(card).to_be_in_viewport()


@screen
async def question_approval(page: Page, showcase: Showcase) -> None:
    await at(page, showcase, "approval")


@screen
async def question_command(page: Page, showcase: Showcase) -> None:
    """The last question, with the status line and the menu of ways to allow."""
    await enter(page, showcase.waiting)
    await page.get_by_role("button", name="More ways to allow").last.click()
    await expect(page.get_by_role("menu")).to_be_visible()


@screen
async def question_refuse(page: Page, showcase: Showcase) -> None:
    await at(page, showcase, "approval", number=1)
    await page.get_by_role("button", name="Refuse…").last.click()
    await expect(page.get_by_label("What should the agent know?").last).to_be_focused()


@screen
async def question_arguments(page: Page, showcase: Showcase) -> None:
    """Edited arguments that are not valid JSON."""
    await at(page, showcase, "approval", number=1)
    await page.get_by_role("button", name="Edit arguments").last.click()
    await page.get_by_label("Arguments as JSON").fill('{"command": "crontab -l"')
    await page.get_by_role("button", name="Allow with these arguments").last.click()
    await expect(page.locator(".question-error")).to_be_visible()


@screen
async def question_texts(page: Page, showcase: Showcase) -> None:
    """Arguments that are all texts, with a field for each."""
    await at(page, showcase, "approval")
    await page.get_by_role("button", name="Edit arguments").first.click()
    await expect(page.get_by_role("textbox", name="note", exact=True)).to_be_visible()


@screen
async def question_choices(page: Page, showcase: Showcase) -> None:
    """A selection, and a confirmation of something dangerous."""
    await at(page, showcase, "selection")
    await page.get_by_role("checkbox", name="Europe").check()


@screen
async def question_plan(page: Page, showcase: Showcase) -> None:
    await at(page, showcase, "plan_review")


@screen
async def question_plan_edited(page: Page, showcase: Showcase) -> None:
    await at(page, showcase, "plan_review")
    await page.get_by_role("button", name="Edit", exact=True).click()
    await expect(page.get_by_label("Plan (Markdown)")).to_be_focused()


@screen
async def question_feedback(page: Page, showcase: Showcase) -> None:
    await at(page, showcase, "feedback")


@screen
async def question_form(page: Page, showcase: Showcase) -> None:
    await at(page, showcase, "form")


@screen
async def question_form_refused(page: Page, showcase: Showcase) -> None:
    """The error of the server for a missing day."""
    await at(page, showcase, "form")
    await page.get_by_role("button", name="Book it").click()
    await expect(page.locator(".question-error")).to_contain_text("required")


@screen
async def questions_viewed(page: Page, showcase: Showcase) -> None:
    """Questions as a viewer sees them, who cannot answer."""
    await sign_in_as(page, showcase, "kenta")
    await at(page, showcase, "selection")


@screen
async def questions_answered(page: Page, showcase: Showcase) -> None:
    await enter(page, showcase.answered)


@screen
async def questions_answered_start(page: Page, showcase: Showcase) -> None:
    await questions_answered(page, showcase)
    await page.locator("#log").evaluate("log => { log.scrollTop = 0 }")


@screen
async def questions_simplified(page: Page, showcase: Showcase) -> None:
    await speak(page, showcase, "zh-hans")
    await at(page, showcase, "approval")


@screen
async def questions_in_the_list(page: Page, showcase: Showcase) -> None:
    """The session list, in which another session waits."""
    await enter(page, showcase.answered)
    await open_sidebar(page)
