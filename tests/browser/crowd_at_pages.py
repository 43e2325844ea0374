"""Random actions of users on a page of a session, with its buttons, keys and fields."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from playwright.async_api import FilePayload, Page

from tests.browser.crowd import Crowd, Viewer
from tests.support import files

TEXTS = (
    "Hello", "What is 6*7?", "A **bold** question\n\nwith lines", "你好吗", "@agent do it", "x" * 200, "@helper hm",
    "Bo, @bo look", "@helper @critic which one?", "@critic，@helper 你们看", "@ana @cy and @agent: see `@helper`",
)  # fmt: skip
FILES: tuple[FilePayload, ...] = (
    {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"# Notes\n\nHello"},
    {"name": "red.png", "mimeType": "image/png", "buffer": files.picture("PNG", (64, 32))},
    {"name": "broken.png", "mimeType": "image/png", "buffer": b"not a picture"},
)
# The share of edits that are of old messages.
OLD = 0.35
Action = Callable[[Crowd, Viewer], Awaitable[None]]
ACTIONS: dict[str, tuple[float, Action]] = {}


def action(weight: float) -> Callable[[Action], Action]:
    def add(function: Action) -> Action:
        ACTIONS[function.__name__] = (weight, function)
        return function

    return add


async def press(page: Page, selector: str, chance: Random) -> bool:
    """Press a random one of the visible, enabled buttons. Return whether there is one."""
    script = """([selector, share]) => {
      const found = [...document.querySelectorAll(selector)].filter((each) => !each.disabled && each.checkVisibility());
      const one = found[Math.floor(share * found.length)];
      one?.click();
      return Boolean(one);
    }"""
    done: bool = await page.evaluate(script, [selector, chance.random()])
    return done


# -- by the page


@action(6)
async def say(crowd: Crowd, viewer: Viewer) -> None:
    field = viewer.page.locator("#text")
    await field.fill(crowd.chance.choice(TEXTS))
    await field.press("Enter")


@action(1.5)
async def stop(crowd: Crowd, viewer: Viewer) -> None:
    await press(viewer.page, ".dock [data-action=stop]", crowd.chance)


@action(2)
async def edit_queued(crowd: Crowd, viewer: Viewer) -> None:
    if not await press(viewer.page, "#queue [data-action=edit-queued]", crowd.chance):
        return
    field = viewer.page.locator("#queue form textarea").last
    await field.fill(f"Queued again {crowd.chance.random():.3f}")
    match crowd.chance.randrange(3):
        case 0:
            await field.press("Enter")
        case 1:
            await field.press("Escape")


@action(1)
async def withdraw(crowd: Crowd, viewer: Viewer) -> None:
    await press(viewer.page, "#queue [data-action=withdraw]", crowd.chance)


@action(1.5)
async def send_now(crowd: Crowd, viewer: Viewer) -> None:
    await press(viewer.page, "#queue [data-action=send-now], [data-action=send-held]", crowd.chance)


@action(6)
async def key_on_message(crowd: Crowd, viewer: Viewer) -> None:
    key = crowd.chance.choice(["x", "x", "r", "s", "d", "h", "Delete", "ArrowLeft", "ArrowLeft", "ArrowRight", "c"])
    crowd.note(f"  {key}")
    where = ":has(> .attempts)" if key.startswith("Arrow") else ""
    script = """([where, share]) => {
      const found = [...document.querySelectorAll(`#messages > article.message:not(.folded)${where}`)].slice(-8);
      const one = found[Math.floor(share * found.length)];
      one?.focus({ preventScroll: true });
      return one?.id ?? "";
    }"""
    found = await viewer.page.evaluate(script, [where, crowd.chance.random()])
    crowd.note(f"  {found}")
    if found:
        await viewer.page.keyboard.press(key)
        await confirm(crowd, viewer)
        await viewer.page.keyboard.press("Escape")


async def confirm(crowd: Crowd, viewer: Viewer) -> None:
    await asyncio.sleep(0.1)
    for _ in range(3):
        if not await press(viewer.page, "dialog[open].confirm [value=confirm]", crowd.chance):
            break
        await asyncio.sleep(0.1)


@action(3)
async def edit_message(crowd: Crowd, viewer: Viewer) -> None:
    """Edit a recent message or, less often, one of the oldest."""
    script = """([share, isOld]) => {
      const all = [...document.querySelectorAll("#messages > :is(.user, .assistant)")];
      const found = isOld ? all.slice(0, 6) : all.slice(-6);
      const one = found[Math.floor(share * found.length)];
      one?.focus({ preventScroll: true });
    }"""
    await viewer.page.evaluate(script, [crowd.chance.random(), crowd.chance.random() < OLD])
    await viewer.page.keyboard.press("e")
    field = viewer.page.locator("form.edit textarea").last
    await field.fill(f"Edited **{crowd.chance.random():.3f}**")
    name = crowd.chance.choice(["save", "again", "again", "cancel", ""])
    crowd.note(f"  {name}")
    if name:
        await press(viewer.page, f"form.edit [data-name={name}]", crowd.chance)
        await confirm(crowd, viewer)


@action(1.5)
async def end_edit(crowd: Crowd, viewer: Viewer) -> None:
    name = crowd.chance.choice(["save", "cancel"])
    await press(viewer.page, f"form.edit [data-name={name}], #queue form [data-name=cancel]", crowd.chance)


@action(2.5)
async def press_toast(crowd: Crowd, viewer: Viewer) -> None:
    if await press(viewer.page, ".toast-action", crowd.chance):
        crowd.note("  pressed")
        await confirm(crowd, viewer)


@action(1.5)
async def press_notice(crowd: Crowd, viewer: Viewer) -> None:
    if await press(viewer.page, "#notices .button", crowd.chance):
        crowd.note("  pressed")
        await confirm(crowd, viewer)


@action(2)
async def slash(crowd: Crowd, viewer: Viewer) -> None:
    said = crowd.chance.choice(
        ["/compact", "/stop", "/mode-chat", "/mode-agent", "/mode-agent", "/retry", "/continue", "/run-tools", "/first",
         "/latest", "/previous", "/next", f"/rename Title {crowd.chance.randrange(99)}", "/archive"]
    )  # fmt: skip
    crowd.note(f"  {said}")
    field = viewer.page.locator("#text")
    await field.fill(said)
    await field.press("Enter")
    await confirm(crowd, viewer)
    await field.fill("")


@action(3)
async def attempts(crowd: Crowd, viewer: Viewer) -> None:
    if await press(viewer.page, ".attempts button", crowd.chance):
        crowd.note("  pressed")
        await confirm(crowd, viewer)


@action(1.5)
async def press_in_message(crowd: Crowd, viewer: Viewer) -> None:
    """Press Continue, Retry or Compact, or unfold a summary or tool calls."""
    kinds = "[data-action=continue], [data-action=retry], [data-action$=-summary], .tool-run, summary"
    await press(viewer.page, f"#messages :is({kinds})", crowd.chance)
    await confirm(crowd, viewer)


@action(7)
async def answer(crowd: Crowd, viewer: Viewer) -> None:
    """Fill in an open question and press one of its buttons."""
    script = """(share) => {
      const forms = [...document.querySelectorAll("form[data-question]")];
      const form = forms[Math.floor(share * forms.length)];
      if (!form) return false;
      for (const each of form.querySelectorAll("textarea, input:not([type=radio], [type=checkbox])"))
        if (!each.value) each.value = each.type === "number" ? "3" : each.type === "date" ? "2026-01-02" : "Yes";
      for (const set of form.querySelectorAll("fieldset")) set.querySelector("input").checked = true;
      form.dispatchEvent(new Event("input", { bubbles: true }));
      const all = [...form.querySelectorAll("button[value], button[type=submit]")];
      const buttons = all.filter((each) => each.checkVisibility());
      const one = buttons[Math.floor(share * 7919 % 1 * buttons.length)];
      one?.click();
      return Boolean(one);
    }"""
    for _ in range(crowd.chance.choice([1, 1, 4])):
        if not await viewer.page.evaluate(script, crowd.chance.random()):
            break
        await asyncio.sleep(0.05)


@action(1)
async def half_answer(crowd: Crowd, viewer: Viewer) -> None:
    """Write in a question without sending the answer."""
    field = viewer.page.locator("form[data-question] textarea").first
    if await field.count() and await field.is_visible():
        await field.fill("Half an answer")


@action(1.5)
async def choose_model(crowd: Crowd, viewer: Viewer) -> None:
    await press(viewer.page, "button#model", crowd.chance)
    await viewer.page.locator(".popover [role=option]").first.wait_for()
    await viewer.page.locator(
        ".popover [role=option]", has_text=crowd.chance.choice(["wire-large", "wire-small"])
    ).first.click()
    await viewer.page.keyboard.press("Escape")


@action(2)
async def panel(crowd: Crowd, viewer: Viewer) -> None:
    name = crowd.chance.choice(["about", "context", "files", "close", "about"])
    crowd.note(f"  {name}")
    is_open = not await viewer.page.evaluate("() => document.getElementById('panel').hidden")
    if name == "close":
        await press(viewer.page, "[data-action=panel-close]", crowd.chance)
        return
    if not is_open:
        await viewer.page.evaluate("() => document.getElementById('panel-button').click()")
    await viewer.page.evaluate("(tab) => document.querySelector(`#panel [data-tab=${tab}]`).click()", name)


@action(1)
async def include_in_panel(crowd: Crowd, viewer: Viewer) -> None:
    await press(viewer.page, "#panel-context [data-include]", crowd.chance)


@action(1)
async def prompt(crowd: Crowd, viewer: Viewer) -> None:
    field = viewer.page.locator("#prompt")
    if await field.count() and await field.is_visible():
        await field.fill(f"Be brief {crowd.chance.random():.3f}")
        await press(viewer.page, crowd.chance.choice(["#prompt-save", "#prompt-undo", "#none"]), crowd.chance)


@action(1)
async def find(crowd: Crowd, viewer: Viewer) -> None:
    await viewer.page.keyboard.press("Control+f")
    field = viewer.page.locator("#find-words")
    await field.fill("Hello")
    await asyncio.sleep(0.3)
    for _ in range(crowd.chance.randrange(3)):
        await field.press("Enter")
    if crowd.chance.random() < 0.8:
        await field.press("Escape")


@action(1.5)
async def scroll(crowd: Crowd, viewer: Viewer) -> None:
    share = crowd.chance.choice([0, 0.3, 0.8, 1, 1])
    await viewer.page.evaluate(
        "(share) => { const log = document.getElementById('log'); log.scrollTop = share * log.scrollHeight; }", share
    )


@action(1)
async def upload(crowd: Crowd, viewer: Viewer) -> None:
    if not await viewer.page.locator("#files").count():
        return
    chosen = crowd.chance.choices(FILES, (4, 4, 1), k=crowd.chance.choice([1, 1, 2]))
    await viewer.page.locator("#files").set_input_files(chosen)
    await viewer.page.locator("#uploads [data-state=ready]").first.wait_for()
    if crowd.chance.random() < 0.3:
        await press(viewer.page, "#uploads [data-action=upload-remove]", crowd.chance)
    if crowd.chance.random() < 0.8:
        await say(crowd, viewer)


@action(1)
async def toolbar(crowd: Crowd, viewer: Viewer) -> None:
    await press(
        viewer.page,
        ".message-actions.resting [data-name=retry], .message-actions.resting [data-name=answer]",
        crowd.chance,
    )
    await confirm(crowd, viewer)


@action(1)
async def hover(crowd: Crowd, viewer: Viewer) -> None:
    await viewer.page.mouse.move(crowd.chance.randrange(200, 360), crowd.chance.randrange(150, 600))


@action(0.7)
async def restore(crowd: Crowd, viewer: Viewer) -> None:
    await press(viewer.page, "[data-action=restore-session]", crowd.chance)
