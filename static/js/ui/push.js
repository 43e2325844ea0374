// Push messages to this browser: turned on and off in the settings, and kept valid by every page.
import { post } from "../net/http.js";

const WORKER = "/service-worker.js";
const ADDRESS = "/push";
const root = document.documentElement;

export const isSupported = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

const registration = () => navigator.serviceWorker?.getRegistration().catch(() => undefined);

/** Resolves to this browser's subscription, or to null. */
export const subscription = async () =>
  isSupported() ? ((await (await registration())?.pushManager.getSubscription()) ?? null) : null;

/** Subscribes this browser, and resolves to the server's answer; rejects with an Error if the browser or server refuses. */
export async function turnOn(key, failed) {
  const worker = await navigator.serviceWorker.register(WORKER);
  await navigator.serviceWorker.ready;
  const made = await subscribe(worker.pushManager, key).catch(async (error) => {
    await worker.unregister(); // of no use without a push service
    throw error;
  });
  return post(ADDRESS, { act: "register", ...valuesOf(made) }, failed);
}

/** Ends this browser's subscription, and resolves to the server's answer. */
export async function turnOff(failed) {
  await (await subscription())?.unsubscribe();
  return post(ADDRESS, { act: "remove" }, failed);
}

export const test = (failed) => post(`${ADDRESS}/test`, {}, failed);

/** Shows a notification, by the service worker if there is one: on phones nothing else can, and it replaces a push message. */
export async function notify(title, { onclick, url, ...options }) {
  const worker = await registration();
  if (worker?.active) return worker.showNotification(title, { ...options, data: { url } });
  try {
    const shown = new Notification(title, options);
    shown.addEventListener("click", () => {
      onclick();
      shown.close();
    });
  } catch {
    // a phone without the service worker
  }
}

/** Subscribes with a key. A subscription that was made with another key has to end first. */
async function subscribe(manager, key) {
  const present = await manager.getSubscription();
  if (present && !hasKey(present, key)) await present.unsubscribe();
  return manager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(key) });
}

function hasKey({ options }, key) {
  if (!options?.applicationServerKey) return true; // the browser does not say
  return String(new Uint8Array(options.applicationServerKey)) === String(bytesOf(key));
}

function bytesOf(key) {
  const plain = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

function valuesOf(made) {
  const { endpoint, keys } = made.toJSON();
  return { endpoint, p256dh: keys.p256dh, auth: keys.auth };
}

/** Returns the name by which the server knows an endpoint. */
async function digestOf(endpoint) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Renews what the server knows of this browser: after signing in again, a new address or a new key of the server. Ends a
 * subscription that the user has removed elsewhere, or that is another user's.
 */
async function keepValid() {
  const present = await subscription();
  if (!present || (await digestOf(present.endpoint)) === root.dataset.push) return;
  const { known, key } = await post(ADDRESS, { act: "refresh", ...valuesOf(present) }, "");
  if (!known || !key) await present.unsubscribe();
  else if (!hasKey(present, key)) {
    const made = await subscribe((await registration()).pushManager, key);
    await post(ADDRESS, { act: "refresh", ...valuesOf(made) }, "");
  }
}

export function connect() {
  if (isSupported()) keepValid().catch(() => {}); // the next page tries again
}
