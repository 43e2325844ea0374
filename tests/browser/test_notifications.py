"""Notifications of a user in another tab: the tab's title and icon, and the browser's notifications."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from playwright.async_api import Browser, expect

from tests.browser.person import Person
from tests.browser.test_chat import invited, make_viewer, reply
from tests.support.server import Server, run_in
from tests.wire.script import Reply
from tests.wire.server import WireServer

# A headless browser shows no notifications, so this stub records them. It also reports the page as unfocused, and
# removes the push service, which tests/browser/test_push.py covers.
BROWSER = """
delete globalThis.PushManager;
globalThis.shown = [];
globalThis.alerts = [];
class Kept extends EventTarget {
  static permission = "granted";
  static requestPermission = async () => "granted";
  constructor(title, options) { super(); shown.push([title, options.body]); alerts.push(options.renotify); }
  close() {}
}
globalThis.Notification = Kept;
document.hasFocus = () => globalThis.looking ?? false;
"""
# A service worker that has just shown a push message.
PUSHED = """
const pushed = { data: { alertedAt: Date.now() } };
navigator.serviceWorker.getRegistration = async () => ({
  active: {},
  getNotifications: async () => [pushed],
  showNotification: async (title, options) => void new Notification(title, options),
});
"""

# A service worker, and another tab that alerts the user to the same event while this page asks for its notifications.
OTHER_TAB = """
navigator.serviceWorker.getRegistration = async () => ({
  active: {},
  getNotifications: async ({ tag }) => {
    localStorage.setItem("parley:alert", `${tag} ${Date.now()}`);
    return [];
  },
  showNotification: async (title, options) => void new Notification(title, options),
});
"""
# Notes that another tab has answered that the user is looking at it.
SEEN = """
new BroadcastChannel("parley:in-view").addEventListener("message", ({ data }) => { globalThis.seen ||= data.seen; });
"""


async def long_turn(ana: Person, model: WireServer, seconds: int) -> None:
    """Run a turn that takes this many seconds by the page's clock."""
    gate = asyncio.Event()
    model.script(reply("Well", gate=gate, rest=(" done",)))
    await ana.say("Take your time")
    await expect(ana.answers.first).to_contain_text("Well")
    await expect(ana.page.locator("#favicon")).to_have_attribute("href", re.compile("/favicon-working.svg$"))
    await ana.page.clock.fast_forward(seconds * 1000)
    gate.set()
    await ana.sees_state("idle")
    await expect(ana.page.locator("#favicon")).to_have_attribute("href", re.compile("/favicon.svg$"))


async def wanting(ana: Person, server: Server) -> None:
    """Turn on notifications in the settings, and return to the session."""
    session = ana.page.url
    await ana.page.add_init_script(BROWSER)
    await ana.page.clock.install()
    await ana.page.goto(f"{server.address}/settings/")
    await ana.page.get_by_role("switch", name="Browser notifications").click()
    await expect(ana.page.locator("#toasts")).to_contain_text("Saved")
    await ana.page.goto(session)
    await ana.sees_connection("Connected")


async def only_mentions(ana: Person) -> None:
    """Let the agent answer only messages that mention it."""
    await ana.page.get_by_role("button", name="More", exact=True).first.click()
    await ana.page.get_by_role("menuitem", name="Agent behavior").click()
    await ana.page.get_by_role("menuitemradio", name="Answer only @mentions").click()
    await expect(ana.page.get_by_role("button", name="Only @agent")).to_be_visible()


async def shown(ana: Person) -> list[list[str]]:
    kept: list[list[str]] = await ana.page.evaluate("shown")
    return kept


async def has_shown(person: Person, *expected: list[str]) -> None:
    """Wait for this many notifications, and compare them."""
    await person.page.wait_for_function("count => shown.length >= count", arg=len(expected))
    assert await shown(person) == list(expected)


async def test_end_of_a_long_turn_is_notified(ana: Person, model: WireServer, server: Server) -> None:
    """RUN-03: the tab's icon shows the agent's status.

    At the end of a turn of over 20 seconds, the browser notifies a user who looks elsewhere.
    """
    await wanting(ana, server)
    await long_turn(ana, model, 25)
    await has_shown(ana, ["Take your time", "The agent has finished."])


async def test_failed_turn_is_notified_as_failed_and_a_stopped_one_not_at_all(
    ana: Person, model: WireServer, server: Server
) -> None:
    """UI-22: the page’s notification of a turn’s end contains what the push message contains."""
    await wanting(ana, server)
    gate = asyncio.Event()
    model.script(refusal(gate))
    await ana.say("Take your time")
    await ana.sees_state("thinking")
    await ana.page.clock.fast_forward(25_000)
    gate.set()
    failed = ["Take your time", "The agent couldn’t finish its answer."]
    await has_shown(ana, failed)
    model.script(reply("So far", gate=asyncio.Event()))
    await ana.say("Again")
    await expect(ana.answers.first).to_contain_text("So far")
    await ana.page.clock.fast_forward(25_000)
    await ana.stop.click()
    await expect(ana.page.locator(".marker")).to_contain_text("Stopped by Admin")
    await ana.sees_state("idle")
    model.script(reply("Done", gate=(gate := asyncio.Event())))
    await ana.say("And again")
    await expect(ana.answers.nth(1)).to_contain_text("Done")
    await ana.page.clock.fast_forward(25_000)
    gate.set()
    await has_shown(ana, failed, ["Take your time", "The agent has finished."])


async def test_turn_that_failed_while_the_page_slept_is_notified_as_failed(
    ana: Person, model: WireServer, server: Server, browser: Browser
) -> None:
    """UI-22, LIVE-02: a page that catches up learns how the turn ended together with its end."""
    bo = await invited(ana, browser, "Bo")
    await wanting(ana, server)
    gate = asyncio.Event()
    model.script(refusal(gate))
    await ana.say("Take your time")
    await ana.sees_state("thinking")
    await ana.page.context.set_offline(True)
    await ana.sees_connection("You’re offline")
    gate.set()
    await expect(bo.page.locator("article.error")).to_have_count(1)
    await bo.sees_state("idle")
    await ana.page.clock.fast_forward(25_000)
    await ana.page.context.set_offline(False)
    await has_shown(ana, ["Take your time", "The agent couldn’t finish its answer."])
    ana.reports.clear()
    bo.check_console()


def refusal(gate: asyncio.Event) -> Reply:
    """Return a request’s refusal by the model, sent when the gate opens."""
    return replace(Reply.of_json({"error": {"message": "No."}}, 400), hold=gate)


async def test_untitled_session_has_the_name_that_push_messages_give_it(
    ana: Person, model: WireServer, server: Server
) -> None:
    """UI-22: on the page it is a new session, but elsewhere that would be a wrong name for an old one."""
    await wanting(ana, server)
    gate = asyncio.Event()
    model.script(reply("Well", gate=gate, rest=(" done",)))
    await ana.say("Take your time")
    await expect(ana.answers.first).to_contain_text("Well")
    session = ana.page.url.rstrip("/").rsplit("/", 1)[1]
    run_in(server, f"from chat.models import Session; Session.objects.filter(pk='{session}').update(title='')")
    await ana.page.reload()
    await ana.sees_connection("Connected")
    await expect(ana.page.get_by_role("heading", level=1)).to_contain_text("New session")
    await ana.page.clock.fast_forward(25_000)
    gate.set()
    await has_shown(ana, ["Untitled session", "The agent has finished."])


async def test_short_turns_and_those_who_look_are_left_alone(ana: Person, model: WireServer, server: Server) -> None:
    await wanting(ana, server)
    await long_turn(ana, model, 5)
    await ana.page.evaluate("globalThis.looking = true")
    model.script(reply("Again"))
    await ana.say("More")
    await ana.page.clock.fast_forward(30_000)
    await expect(ana.answers.nth(1)).to_contain_text("Again")
    await ana.sees_state("idle")
    assert await shown(ana) == []


async def test_unread_messages_are_counted_in_the_title(ana: Person, model: WireServer) -> None:
    """The tab's title shows the number of unread messages, and its icon a dot, until they are read."""
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    gate = asyncio.Event()
    model.script(reply("Well", gate=gate, rest=(" done",)))
    await ana.say("Tell me")
    await expect(ana.answers.first).to_contain_text("Well")
    await ana.page.evaluate(hide, True)
    gate.set()
    await expect(ana.page).to_have_title(re.compile(r"^\(1\) "))
    await expect(ana.page.locator("#favicon")).to_have_attribute("href", re.compile("/favicon-unread.svg$"))
    await ana.page.evaluate(hide, False)
    await expect(ana.page).not_to_have_title(re.compile(r"^\("))


async def test_icon_shows_a_lost_connection(ana: Person) -> None:
    """LIVE-04: the tab's icon shows a lost connection, also to a user who sees only the tab."""
    await ana.sees_connection("Connected")
    await ana.page.context.set_offline(True)
    await ana.page.evaluate("window.dispatchEvent(new Event('offline'))")
    await expect(ana.page.locator("#favicon")).to_have_attribute("href", re.compile("/favicon-offline.svg$"))
    await ana.page.context.set_offline(False)
    await ana.sees_connection("Connected")
    await expect(ana.page.locator("#favicon")).to_have_attribute("href", re.compile("/favicon.svg$"))


async def test_mentions_are_notified_and_marked_in_the_list(
    ana: Person, model: WireServer, server: Server, browser: Browser
) -> None:
    """LIVE-07: the pages of this and of another session notify the user. Opening the session removes the mark."""
    bo = await mentioned_by(ana, server, browser)
    await ana.say("Lunch")
    await expect(bo.page.locator("[data-part=title]").first).to_have_text("Lunch")
    session = bo.page.url
    await bo.begin()
    await bo.sees_connection("Connected")
    row = bo.page.get_by_role("navigation", name="Sessions").get_by_role("listitem").filter(has_text="Lunch")
    await expect(row).to_have_attribute("data-mentioned", "no")
    await ana.say("Please, @bo, come")  # a mention at the end would open suggestions, which take Enter
    await expect(row.get_by_text("You were mentioned")).to_be_attached()
    await has_shown(bo, ["Lunch", "You were mentioned."])
    await expect(bo.page).to_have_title(re.compile(r"^\(1\) "))
    first = await row.get_attribute("data-mention")
    await ana.say("@bo, now")
    await expect(row).not_to_have_attribute("data-mention", str(first))
    await has_shown(bo, *[["Lunch", "You were mentioned."]] * 2)
    await bo.page.goto(session)
    await bo.sees_connection("Connected")
    await expect(row).to_have_attribute("data-mentioned", "no")
    await ana.say("@Bo, can you look?")
    await expect(bo.messages.locator(".mention.is-me")).to_have_text(["@bo", "@bo", "@Bo"])
    await has_shown(bo, ["Lunch", "Admin mentioned you."])
    bo.check_console()


async def test_notification_that_replaces_another_one_alerts_again(
    ana: Person, server: Server, browser: Browser
) -> None:
    """LIVE-07: browsers replace a notification silently, so a user who leaves one would not hear of later mentions.

    What another page or a push message has reported a moment ago alerts the user only once.
    """
    bo = await mentioned_by(ana, server, browser)
    assert await mentions_alert(ana, bo, 1)
    await bo.page.goto(bo.page.url)
    await bo.sees_connection("Connected")
    assert not await mentions_alert(ana, bo, 2)
    await bo.page.clock.fast_forward(20_000)
    assert await mentions_alert(ana, bo, 3)
    await bo.page.clock.fast_forward(20_000)
    await bo.page.evaluate(PUSHED)
    assert not await mentions_alert(ana, bo, 4)


async def test_two_tabs_that_get_an_event_at_once_alert_once(ana: Person, server: Server, browser: Browser) -> None:
    """LIVE-07: a tab notices that another tab has alerted the user while it looked for a shown notification."""
    bo = await mentioned_by(ana, server, browser)
    await bo.page.evaluate(OTHER_TAB)
    assert not await mentions_alert(ana, bo, 1)


async def test_session_in_view_in_another_tab_is_not_notified(ana: Person, server: Server, browser: Browser) -> None:
    """LIVE-07: a tab in the background shows no notification about a session that the user is looking at."""
    bo = await mentioned_by(ana, server, browser)
    await ana.say("Lunch")
    await expect(bo.page.locator("[data-part=title]").first).to_have_text("Lunch")
    tab = Person(await bo.page.context.new_page())
    await tab.page.add_init_script(BROWSER)
    async with tab.page.expect_response(re.compile("-notification")):
        await tab.page.goto(bo.page.url)
    await tab.sees_connection("Connected")
    await tab.page.evaluate("globalThis.looking = true")
    await bo.page.evaluate(SEEN)
    await ana.say("@bo, come")
    await bo.page.wait_for_function("() => globalThis.seen")
    await tab.page.evaluate("globalThis.looking = false")
    await ana.say("@bo, come now")
    await has_shown(bo, ["Lunch", "Admin mentioned you."])


async def test_viewers_get_no_notification_of_a_question(
    ana: Person, model: WireServer, server: Server, browser: Browser
) -> None:
    """UI-22: a user who may not answer is not notified when the agent waits for an answer."""
    bo = await mentioned_by(ana, server, browser)
    await make_viewer(ana, bo)
    await ana.say("Lunch")
    await expect(bo.page.locator("[data-part=title]").first).to_have_text("Lunch")
    await bo.sees_connection("Connected")
    await bo.page.evaluate("document.getElementById('main').dataset.status = 'waiting'")
    await bo.page.clock.fast_forward(5_000)  # the page has waited for the question
    assert await bo.page.evaluate("document.getElementById('main').dataset.status") == "waiting"  # still
    await ana.say("@bo, come")
    await has_shown(bo, ["Lunch", "Admin mentioned you."])


async def test_notification_is_shown_without_the_server(ana: Person, server: Server, browser: Browser) -> None:
    """LIVE-07: a page loads what it needs for notifications when it begins to listen, not with the first one."""
    bo = await mentioned_by(ana, server, browser)
    async with bo.page.expect_response(re.compile("-notification")):
        await bo.page.reload()
    await bo.sees_connection("Connected")
    await bo.page.route("**/*.js", lambda route: route.abort())
    assert await mentions_alert(ana, bo, 1)


async def mentioned_by(ana: Person, server: Server, browser: Browser) -> Person:
    """Invite a member who wants notifications to Ana's session."""
    bo = await invited(ana, browser, "Bo", member=True)
    await wanting(bo, server)
    await ana.page.keyboard.press("Escape")
    await only_mentions(ana)
    return bo


async def mentions_alert(ana: Person, bo: Person, count: int) -> bool:
    """Mention Bo for the `count`-th time. Return whether the notification alerts him."""
    before = len(await shown(bo))
    await ana.say(f"@bo, come, {count}")
    await bo.page.wait_for_function("(before) => shown.length > before", arg=before)
    alerts: list[bool] = await bo.page.evaluate("alerts")
    return alerts[-1]
