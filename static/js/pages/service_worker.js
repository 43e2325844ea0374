// The service worker shows push messages and opens their sessions. It stores nothing on the device, and pages load
// without it. Its notifications have no buttons, so that users do not approve what they have not read.

const ICON = "/app-icons/icon-192";
const BADGE = "/app-icons/badge-96";
const PUSH = "/push";
const TEST = "test";
// A notification that replaces another one alerts the user only if the last alert is older. Otherwise the push message
// about an event would repeat the alert of a page. ui/notification.js has the same rule.
const QUIET_MS = 15_000;
const lastAlerts = new Map(); // the time of this worker's last alert by tag
const UNREADABLE = { title: self.location.hostname, body: "", url: "/", tag: "parley" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("push", (event) => event.waitUntil(show(messageOf(event.data))));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.url ?? "/"));
});
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event.newSubscription)));

const windows = () => self.clients.matchAll({ type: "window", includeUncontrolled: true });
const pathOf = (url) => new URL(url, self.location.origin).pathname;
const findPage = (all, url) => all.find((each) => pathOf(each.url) === pathOf(url));

function messageOf(data) {
  try {
    return { ...UNREADABLE, ...data.json() };
  } catch {
    return UNREADABLE; // browsers require a notification for every message
  }
}

/** Returns whether the browser ends the subscription after a few messages without a notification, as Safari does. */
async function mustShowAll() {
  const subscription = await self.registration.pushManager.getSubscription();
  return subscription !== null && new URL(subscription.endpoint).hostname.endsWith(".push.apple.com");
}

/** Shows a message unless its session is in view. Notifications of pages have the same tag and are replaced. */
async function show({ title, body, url, tag }) {
  const inView = (await windows()).filter(({ visibilityState }) => visibilityState === "visible");
  if (tag !== TEST && findPage(inView, url) && !(await mustShowAll())) return;
  const [replaced] = await self.registration.getNotifications({ tag });
  // Another message may have alerted the user already. Nothing waits from here to lastAlerts.set.
  const lastAlert = Math.max(lastAlerts.get(tag) ?? 0, replaced?.data?.alertedAt ?? 0);
  const renotify = Date.now() - lastAlert > QUIET_MS; // by default, browsers replace notifications silently
  const alertedAt = renotify ? Date.now() : lastAlert;
  lastAlerts.set(tag, alertedAt);
  const data = { url, alertedAt };
  await self.registration.showNotification(title, { body, tag, renotify, icon: ICON, badge: BADGE, data });
}

/** Goes to an open page of the session, or opens one. */
async function open(url) {
  const { origin, hash, href } = new URL(url, self.location.origin);
  if (origin !== self.location.origin) return;
  const page = findPage(await windows(), url);
  const focused = await page?.focus().catch(() => null);
  if (!focused) return self.clients.openWindow(href);
  page.postMessage({ type: "notification", hash });
}

/** Registers a new subscription with the server after the browser has ended the previous one. */
async function renew(newSubscription) {
  const response = await fetch(PUSH, { headers: { Accept: "application/json" } }).catch(() => null);
  // Offline or signed out: the next page that opens registers the browser.
  if (!response?.ok || response.redirected) return;
  const { key, token } = await response.json();
  const options = { userVisibleOnly: true, applicationServerKey: key };
  const { endpoint, keys } = (newSubscription ?? (await self.registration.pushManager.subscribe(options))).toJSON();
  const body = new URLSearchParams({ act: "refresh", endpoint, ...keys });
  const headers = { "X-CSRFToken": token, Accept: "application/json" };
  await fetch(PUSH, { method: "POST", headers, body }).catch(() => null);
}
