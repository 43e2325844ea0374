"""Push messages in a real browser: turned on in the settings, shown by the service worker, and opened on a phone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.person import Person
from tests.support.push_service import Browser as Subscriber
from tests.support.server import Server

# A headless browser shows no notifications and has no push service. This stub of a push service exists until the tab is
# closed, and has the keys of a real browser.
PUSH = """
Object.defineProperty(Notification, "permission", { get: () => "granted" });
Notification.requestPermission = async () => "granted";
const KEPT = "stub:push";
const made = (values) => ({
  endpoint: values.endpoint,
  options: {},
  toJSON: () => values,
  unsubscribe: async () => { sessionStorage.removeItem(KEPT); return true; },
});
const manager = {
  getSubscription: async () => {
    const kept = sessionStorage.getItem(KEPT);
    return kept && made(JSON.parse(kept));
  },
  subscribe: async ({ userVisibleOnly, applicationServerKey }) => {
    if (globalThis.noPushService) throw new DOMException("Registration failed - push service error", "AbortError");
    if (!userVisibleOnly || applicationServerKey.length !== 65) throw new TypeError("not what a browser takes");
    sessionStorage.setItem(KEPT, JSON.stringify(VALUES));
    return made(VALUES);
  },
};
Object.defineProperty(ServiceWorkerRegistration.prototype, "pushManager", { get: () => manager });
"""
# Records the notifications that the worker shows, by tag, like the browser. Those that alert the user are also listed.
WORKER = """() => {
  self.shown = new Map();
  self.alerts = [];
  const kept = new Map();
  ServiceWorkerRegistration.prototype.getNotifications = async ({ tag }) => [kept.get(tag)].filter(Boolean);
  ServiceWorkerRegistration.prototype.showNotification = async (title, { body, tag, data, renotify }) => {
    if (renotify || !kept.has(tag)) self.alerts.push(body);
    kept.set(tag, { data });
    self.shown.set(tag, [title, body, data.url]);
  };
}"""
HOLD = """(times) => {
  const asked = Promise.withResolvers();
  let left = times;
  const { getNotifications } = ServiceWorkerRegistration.prototype;
  ServiceWorkerRegistration.prototype.getNotifications = async (filter) => {
    const found = await getNotifications(filter);
    left -= 1;
    if (left === 0) asked.resolve();
    await asked.promise;
    return found;
  };
}"""
PRESS = """async () => {
  const opened = [];
  Object.defineProperty(self.clients, "openWindow", { value: async (address) => opened.push(address) });
  for (const [, , url] of self.shown.values()) {
    const done = [];
    const event = new ExtendableEvent("notificationclick");
    const notification = { close: () => {}, data: { url } };
    Object.defineProperty(event, "notification", { value: notification });
    Object.defineProperty(event, "waitUntil", { value: (promise) => done.push(promise) });
    self.dispatchEvent(event);
    await Promise.all(done);
  }
  return opened;
}"""


def stub(path: str) -> str:
    target = Subscriber(path).target
    values = {"endpoint": target.endpoint, "keys": {"p256dh": target.p256dh, "auth": target.auth}}
    return f"(() => {{ const VALUES = {json.dumps(values)};\n{PUSH} }})()"


@pytest_asyncio.fixture(loop_scope="session")
async def settings_page(ana: Person, server: Server) -> AsyncIterator[Page]:
    """The settings of a user whose browser allows notifications and has a push service."""
    await ana.page.add_init_script(stub("ana"))
    await ana.page.goto(f"{server.address}/settings/")
    yield ana.page


async def turn_on(page: Page) -> None:
    await page.get_by_role("switch", name="Browser notifications").click()
    await expect(page.locator("#browsers li")).to_contain_text("Chrome on Linuxthis browser")


async def test_switch_registers_this_browser(settings_page: Page) -> None:
    """UI-22: the switch registers the browser in the list of the user's browsers, and removes it again."""
    page = settings_page
    await expect(page.locator("#push")).to_be_hidden()
    await turn_on(page)
    await expect(page.get_by_text("Gets notifications even when Parley is closed.")).to_be_visible()
    await page.reload()
    await expect(page.locator("#browsers li")).to_contain_text("this browser")
    await expect(page.get_by_role("button", name="Send a test")).to_be_visible()
    await page.get_by_role("switch", name="Browser notifications").click()
    await expect(page.locator("#browsers li")).to_have_count(0)
    assert await page.evaluate("sessionStorage.getItem('stub:push')") is None


async def test_removed_browser_unsubscribes(settings_page: Page) -> None:
    """UI-22: a browser that the user removed from the list ends its subscription, and can be turned on again."""
    page = settings_page
    await turn_on(page)
    await page.get_by_role("button", name="Remove · Chrome on Linux").click()
    await expect(page.locator("#toasts")).to_contain_text("Browser removed.")
    await page.wait_for_function("() => sessionStorage.getItem('stub:push') === null")
    await page.reload()
    await expect(page.get_by_text("Notifies you only while Parley is open.", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Turn on in this browser").click()
    await expect(page.locator("#browsers li")).to_contain_text("this browser")


async def test_button_turns_on_the_switch_that_another_tab_has_turned_off(settings_page: Page) -> None:
    """UI-22: a tab that still shows the switch as on does not register the browser without turning it on."""
    await turn_on(settings_page)
    other = await settings_page.context.new_page()
    await other.add_init_script(stub("other"))
    await other.goto(settings_page.url)
    await expect(other.get_by_role("button", name="Turn on in this browser")).to_be_visible()
    await settings_page.get_by_role("switch", name="Browser notifications").click()
    await expect(settings_page.locator("#browsers li")).to_have_count(0)
    await other.get_by_role("button", name="Turn on in this browser").click()
    await expect(other.get_by_role("button", name="Send a test")).to_be_visible()  # the list is still that of the start
    await other.reload()
    await expect(other.get_by_role("switch", name="Browser notifications")).to_be_checked()


async def test_browser_without_a_push_service_shows_it(settings_page: Page) -> None:
    """UI-22: without a push service the page says so, and its own notifications stay on."""
    page = settings_page
    await page.evaluate("globalThis.noPushService = true")
    await page.get_by_role("switch", name="Browser notifications").click()
    await expect(page.get_by_text("Couldn’t connect to the browser’s push service.")).to_be_visible()
    await expect(page.get_by_role("switch", name="Browser notifications")).to_be_checked()
    await page.evaluate("globalThis.noPushService = false")
    await page.get_by_role("button", name="Turn on in this browser").click()
    await expect(page.get_by_text("Gets notifications even when Parley is closed.")).to_be_visible()


async def test_failed_test_notification_is_reported(settings_page: Page) -> None:
    """UI-22: the page reports a failed test, because no push service answers at the stub's address."""
    await turn_on(settings_page)
    await settings_page.get_by_role("button", name="Send a test").click()
    await expect(settings_page.locator("#toasts")).to_contain_text("The push service didn’t accept the notification.")


async def test_iphone_user_is_referred_to_the_home_screen(browser: Browser, server: Server) -> None:
    """UI-22: the settings tell an iPhone's user to use the home screen, because Safari's tabs have no notifications."""
    person = await Person.in_a_session(browser, server.link)
    await person.page.add_init_script(
        "delete globalThis.PushManager; delete globalThis.Notification;"
        "Object.defineProperty(navigator, 'userAgent', { value: 'Mozilla/5.0 (iPhone) Safari/604.1' });"
    )
    await person.page.goto(f"{server.address}/settings/")
    await expect(person.page.get_by_text("add Parley to the home screen first")).to_be_visible()
    person.check_console()


class Worker:
    """The service worker of a page. It gets push messages by the browser's interface for tests."""

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        self._address = address

    async def start(self) -> None:
        self._cdp = await self._page.context.new_cdp_session(self._page)
        registered = asyncio.get_running_loop().create_future()

        def note(event: dict[str, Any]) -> None:
            if event["registrations"] and not registered.done():
                registered.set_result(event["registrations"][0]["registrationId"])

        self._cdp.on("ServiceWorker.workerRegistrationUpdated", note)
        await self._cdp.send("ServiceWorker.enable")
        self._registration = await asyncio.wait_for(registered, 20)
        if not self._page.context.service_workers:
            await self._page.context.wait_for_event("serviceworker")
        (self._script,) = self._page.context.service_workers
        await self._script.evaluate(WORKER)

    async def deliver(self, data: str) -> None:
        values = {"origin": self._address, "registrationId": self._registration, "data": data}
        await self._cdp.send("ServiceWorker.deliverPushMessage", values)

    async def subscribe(self, endpoint: str) -> None:
        """Let the worker see a subscription with a push service."""
        await self._script.evaluate(
            "(endpoint) => { self.registration.pushManager.getSubscription = async () => ({ endpoint }); }", endpoint
        )

    async def hold_until_asked(self, times: int) -> None:
        """Let the browser return the shown notifications only when it has been asked for them this many times."""
        await self._script.evaluate(HOLD, times)

    async def shows(self, *expected: list[str]) -> None:
        """Wait until exactly these notifications are shown. Each is [title, text, address]."""
        shown: list[list[str]] = []
        async with asyncio.timeout(20):
            while shown != list(expected):
                shown = await self._script.evaluate("() => [...self.shown.values()]")

    async def alerts(self) -> list[str]:
        """Return the texts of the notifications that have alerted the user, with a sound for example."""
        alerts: list[str] = await self._script.evaluate("() => self.alerts")
        return alerts

    async def wait(self, seconds: int) -> None:
        """Put the worker's clock forward."""
        await self._script.evaluate("(ms) => { const now = Date.now() + ms; Date.now = () => now; }", seconds * 1000)

    async def press(self) -> list[str]:
        """Press all notifications, and return the addresses of the windows that they open."""
        opened: list[str] = await self._script.evaluate(PRESS)
        return [address.removeprefix(self._address) for address in opened]


def message(session: str, body: str = "one wants to run deploy") -> str:
    url = f"{session}#waiting"
    return json.dumps({"title": "Plan", "body": body, "url": url, "tag": session})


async def test_worker_shows_messages_and_opens_their_session(settings_page: Page, server: Server) -> None:
    """UI-22: the worker shows one notification for each session, and one for a message that it cannot read."""
    await turn_on(settings_page)
    worker = Worker(settings_page, server.address)
    await worker.start()
    await worker.deliver(message("/sessions/s_1/"))
    await worker.shows(["Plan", "one wants to run deploy", "/sessions/s_1/#waiting"])
    await worker.deliver(message("/sessions/s_1/", "Another"))
    await worker.deliver(message("/sessions/s_2/"))
    await worker.deliver("no JSON")
    await worker.shows(
        ["Plan", "Another", "/sessions/s_1/#waiting"],
        ["Plan", "one wants to run deploy", "/sessions/s_2/#waiting"],
        ["127.0.0.1", "", "/"],
    )
    assert await worker.press() == ["/sessions/s_1/#waiting", "/sessions/s_2/#waiting", "/"]


async def test_notification_that_replaces_another_one_alerts_again(settings_page: Page, server: Server) -> None:
    """UI-22: browsers replace a notification silently, so a user who leaves one would not hear of later events.

    Messages that arrive together alert the user once.
    """
    await turn_on(settings_page)
    worker = Worker(settings_page, server.address)
    await worker.start()
    for text, seconds in (("One", 0), ("Two", 10), ("Three", 10), ("Four", 10)):
        await worker.wait(seconds)
        await worker.deliver(message("/sessions/s_1/", text))
        await worker.shows(["Plan", text, "/sessions/s_1/#waiting"])
    assert await worker.alerts() == ["One", "Three"]


async def test_messages_that_arrive_at_once_alert_once(settings_page: Page, server: Server) -> None:
    """UI-22: the worker notices that it has alerted the user for another message while it looked for a shown one."""
    await turn_on(settings_page)
    worker = Worker(settings_page, server.address)
    await worker.start()
    await worker.hold_until_asked(2)
    await worker.deliver(message("/sessions/s_1/", "One"))
    await worker.deliver(message("/sessions/s_1/", "Two"))
    await worker.shows(["Plan", "Two", "/sessions/s_1/#waiting"])
    assert await worker.alerts() == ["One"]


async def worker_with_session_in_view(person: Person, server: Server, name: str) -> tuple[Worker, str]:
    """Turn notifications on, and return the worker and the path of the session that the page shows."""
    address = person.page.url
    await person.page.add_init_script(stub(name))
    await person.page.goto(f"{server.address}/settings/")
    await turn_on(person.page)
    await person.page.goto(address)
    worker = Worker(person.page, server.address)
    await worker.start()
    return worker, address.removeprefix(server.address)


async def test_session_in_view_gets_no_notification(ana: Person, server: Server) -> None:
    """UI-22: a user who has the session in view gets no notification, because the page shows that it waits."""
    worker, session = await worker_with_session_in_view(ana, server, "view")
    await worker.deliver(message(session))
    await worker.deliver(message("/sessions/s_2/"))
    await worker.shows(["Plan", "one wants to run deploy", "/sessions/s_2/#waiting"])


async def test_safari_shows_every_message(ana: Person, server: Server) -> None:
    """UI-22: Safari ends a subscription after three messages without a notification, also if the session is in view."""
    worker, session = await worker_with_session_in_view(ana, server, "safari")
    await worker.subscribe("https://web.push.apple.com/abc")
    await worker.deliver(message(session))
    await worker.shows(["Plan", "one wants to run deploy", f"{session}#waiting"])
