// The service worker: shows push messages, and opens the sessions that they are about. It keeps nothing on the device, and
// answers no requests of pages. Buttons of a notification would approve what no one has read, so there are none.

const ICON = "/app-icons/icon-192";
const BADGE = "/app-icons/badge-96";
const PUSH = "/push";
const TEST = "test";
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
const showing = (all, url) => all.find((each) => pathOf(each.url) === pathOf(url));

function messageOf(data) {
  try {
    return { ...UNREADABLE, ...data.json() };
  } catch {
    return UNREADABLE; // browsers require a notification for every message
  }
}

/** Shows a message, unless its session is in view. A page that notifies for itself uses the same tag: one replaces the other. */
async function show({ title, body, url, tag }) {
  const inView = (await windows()).filter(({ visibilityState }) => visibilityState === "visible");
  if (tag !== TEST && showing(inView, url)) return;
  await self.registration.showNotification(title, { body, tag, icon: ICON, badge: BADGE, data: { url } });
}

/** Goes to the session's page, or opens one. */
async function open(url) {
  const { origin, hash, href } = new URL(url, self.location.origin);
  if (origin !== self.location.origin) return;
  const page = showing(await windows(), url);
  const focused = await page?.focus().catch(() => null);
  if (!focused) return self.clients.openWindow(href);
  page.postMessage({ type: "notification", hash });
}

/** Tells the server of a new subscription, for which the browser has ended the last one. */
async function renew(given) {
  const asked = await fetch(PUSH, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!asked?.ok || asked.redirected) return; // offline or signed out: the next page that opens registers the browser
  const { key, token } = await asked.json();
  const options = { userVisibleOnly: true, applicationServerKey: key };
  const { endpoint, keys } = (given ?? (await self.registration.pushManager.subscribe(options))).toJSON();
  const body = new URLSearchParams({ act: "refresh", endpoint, ...keys });
  const headers = { "X-CSRFToken": token, Accept: "application/json" };
  await fetch(PUSH, { method: "POST", headers, body }).catch(() => null);
}
