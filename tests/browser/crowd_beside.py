"""Random events beside the pages of a session: requests of programs, and failures of the network and the server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urljoin

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Route

from agents.messages import Json
from tests.browser.crowd import PLACED, THERE, Crowd, Viewer
from tests.browser.crowd_at_pages import ACTIONS, TEXTS, action, say

# The weights of the viewers. The last one is a user who may only read.
WEIGHTS = (4, 3, 3, 2, 1)
BESIDE = ("say", "api_change", "api_change", "api_send", "key_on_message", "answer", "api_attempts")
SEEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
  const state = hidden ? "hidden" : "visible";
  Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def act(crowd: Crowd) -> None:
    """Let a random user try a random action. Errors of actions that are not possible now are ignored."""
    [viewer] = crowd.chance.choices(crowd.viewers, WEIGHTS[: len(crowd.viewers)])
    names = list(ACTIONS)
    [name] = crowd.chance.choices(names, [ACTIONS[each][0] for each in names])
    crowd.count += 1
    crowd.note(f"{crowd.count} {viewer.name}: {name}")
    try:
        async with asyncio.timeout(30):
            await ACTIONS[name][1](crowd, viewer)
    except (PlaywrightError, TimeoutError) as error:
        crowd.note(f"  not done: {str(error).splitlines()[:1]}")


async def other(crowd: Crowd, viewer: Viewer) -> None:
    """Let another user act during the present action."""
    mate = crowd.chance.choice([each for each in crowd.viewers if each is not viewer])
    name = crowd.chance.choice(BESIDE)
    crowd.note(f"  beside, {mate.name}: {name}")
    with suppress(PlaywrightError, TimeoutError):
        await ACTIONS[name][1](crowd, mate)
    await asyncio.sleep(crowd.chance.choice([0, 0.1, 0.4]))


# -- trouble


@action(2)
async def cut(crowd: Crowd, viewer: Viewer) -> None:
    await viewer.line.cut()
    for _ in range(crowd.chance.randrange(4)):
        await other(crowd, viewer)
    viewer.line.restore()


@action(2)
async def delay(crowd: Crowd, viewer: Viewer) -> None:
    viewer.line.hold()
    for _ in range(crowd.chance.randrange(1, 4)):
        await other(crowd, viewer)
    viewer.line.release()


@action(1)
async def slow_line(crowd: Crowd, viewer: Viewer) -> None:
    """Delay the frames in both directions, and deliver them a few at a time."""
    viewer.line.hold(commands=True)
    await other(crowd, viewer)
    with suppress(PlaywrightError, TimeoutError):
        await ACTIONS[crowd.chance.choice(BESIDE)][1](crowd, viewer)
    for _ in range(crowd.chance.randrange(1, 4)):
        viewer.line.trickle(crowd.chance.randrange(1, 9))
        await other(crowd, viewer)
    viewer.line.release()


@action(1)
async def slow_requests(crowd: Crowd, viewer: Viewer) -> None:
    """Hold the requests of a page while others act, and send them in another order."""
    held: list[Route] = []
    is_over = asyncio.Event()

    async def hold(route: Route) -> None:
        held.append(route)
        await is_over.wait()

    await viewer.page.route(lambda url: "/sessions" in url, hold)
    try:
        for name in crowd.chance.choices(("key_on_message", "panel", "edit_message", "upload", "scroll"), k=2):
            crowd.note(f"  {name}")
            with suppress(PlaywrightError, TimeoutError):
                await ACTIONS[name][1](crowd, viewer)
            await other(crowd, viewer)
    finally:
        crowd.chance.shuffle(held)
        for route in held:
            with suppress(PlaywrightError):
                await route.continue_()
        is_over.set()
        await viewer.page.unroute_all(behavior="wait")


@action(1)
async def offline(crowd: Crowd, viewer: Viewer) -> None:
    context = viewer.page.context
    mates = crowd.mates(viewer)
    await context.set_offline(True)
    for each in mates:
        await each.line.cut()
    await other(crowd, viewer)
    with suppress(PlaywrightError):  # viewers cannot send messages
        await say(crowd, viewer)
    for each in mates:
        each.line.restore()
    await context.set_offline(False)


@action(1)
async def reload(crowd: Crowd, viewer: Viewer) -> None:
    await viewer.page.reload(timeout=20_000)


@action(0.7)
async def away_and_back(crowd: Crowd, viewer: Viewer) -> None:
    await viewer.page.goto(urljoin(viewer.address, "/"), timeout=20_000)
    await other(crowd, viewer)
    await viewer.page.go_back(timeout=20_000)


@action(1)
async def background(crowd: Crowd, viewer: Viewer) -> None:
    await viewer.page.evaluate(SEEN, True)
    for _ in range(crowd.chance.randrange(1, 4)):
        await other(crowd, viewer)
    await viewer.page.evaluate(SEEN, False)


@action(0.35)
async def restart(crowd: Crowd, _viewer: Viewer) -> None:
    crowd.note(f"  {await crowd.servers.fail(crowd.chance)}")


# -- by the API


@action(3)
async def api_send(crowd: Crowd, viewer: Viewer) -> None:
    await crowd.command(viewer, type="send", text=crowd.chance.choice(TEXTS))


@action(5)
async def api_change(crowd: Crowd, viewer: Viewer) -> None:
    chance, message, number = crowd.chance, crowd.any_message(), crowd.chance.randrange(99)
    gone, queued = crowd.any_message("removed_at is not null"), crowd.any_message(f"{THERE} and status = 'queued'")
    kinds: list[Json] = [
        {"type": "edit", "id": message, "text": f"Changed *{number}*"},
        {"type": "exclude", "id": message}, {"type": "include", "id": message},
        {"type": "exclude_before", "id": message}, {"type": "include_before", "id": message},
        {"type": "remove", "id": message}, {"type": "restore", "id": gone},
        {"type": "rename", "title": f"Title {number}"},
        {"type": "remove", "id": crowd.any_message(f"{THERE} and role = 'assistant'")},
        {"type": "set_model", "provider": "wire", "model": chance.choice(["wire-large", "wire-small"])},
        {"type": "configure", "mode": chance.choice(["chat", "agent", "agent"])},
        {"type": "configure", "replies": chance.choice(["all", "all", "mentions", "auto"])},
        {"type": "configure", "reasoning_effort": chance.choice(["low", "high", ""])},
        {"type": "set_system_prompt", "system_prompt": f"Prompt {number}"},
        {"type": "suggest_edit", "id": message, "text": f"Suggested {number}"},
        {"type": "add_agent", "agent": "helper"}, {"type": "remove_agent", "agent": "helper"},
        {"type": "add_agent", "agent": "critic"}, {"type": "remove_agent", "agent": "critic"},
        {"type": "withdraw", "id": queued}, {"type": "edit_queued", "id": queued, "text": f"Q {number}"},
        {"type": "send_now"}, {"type": "typing"}, {"type": "compact"}, {"type": "continue"},
        {"type": "editing", "id": message, "open": True},
    ]  # fmt: skip
    await crowd.command(viewer, **chance.choice(kinds))


@action(4)
async def api_attempts(crowd: Crowd, viewer: Viewer) -> None:
    message, asked = crowd.any_message(), crowd.any_message(f"{PLACED} and role = 'user'")
    kinds: list[Json] = [
        {"type": "retry", "id": message, "at_most": 30}, {"type": "retry", "id": message, "at_most": 4},
        {"type": "switch_attempt", "id": asked, "number": crowd.chance.choice([1, 2]), "at_most": 30},
        {"type": "run_tools", "id": crowd.any_message(f"{THERE} and type = 'tool_group'"), "at_most": 30},
        {"type": "cancel"},
    ]  # fmt: skip
    await crowd.command(viewer, **crowd.chance.choice(kinds))


@action(0.6)
async def api_fork(crowd: Crowd, viewer: Viewer) -> None:
    await crowd.command(viewer, type="fork", id=crowd.any_message(), run=False)


@action(0.6)
async def api_archive(crowd: Crowd, _viewer: Viewer) -> None:
    await crowd.request("PATCH", "", {"status": crowd.chance.choice(["archived", "active", "active"])})


@action(1.2)
async def api_role(crowd: Crowd, _viewer: Viewer) -> None:
    """Change the role of a random user, whose page then reloads."""
    users = crowd.servers.rows("select user_id from chat_share where session_id = ?", crowd.session)
    role = crowd.chance.choice(["viewer", "editor", "editor"])
    await crowd.request("PUT", f"/members/{crowd.chance.choice(users)[0]}", {"role": role})
