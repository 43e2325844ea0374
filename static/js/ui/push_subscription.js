// Changes of this browser's push subscription: the settings turn it on and off, and every page renews it.
import { post } from "../net/http.js";
import { registration, subscription } from "./push.js";

const WORKER = "/service-worker.js";
const ADDRESS = "/push";
const root = document.documentElement;

/** Subscribes this browser. Resolves to the server's response, or rejects with an Error if browser or server refuse. */
export async function turnOn(key, failed) {
  const worker = await navigator.serviceWorker.register(WORKER);
  await navigator.serviceWorker.ready;
  const created = await subscribe(worker.pushManager, key).catch(async (error) => {
    await worker.unregister(); // the service worker is useless without a push service
    throw error;
  });
  return post(ADDRESS, { act: "register", ...valuesOf(created) }, failed);
}

/** Ends this browser's subscription. Resolves to the server's response. */
export async function turnOff(failed) {
  await (await subscription())?.unsubscribe();
  return post(ADDRESS, { act: "remove" }, failed);
}

export const sendTest = (failed) => post(`${ADDRESS}/test`, {}, failed);

/** Subscribes with a key. Ends a subscription with another key first, because browsers refuse two. */
async function subscribe(manager, key) {
  const present = await manager.getSubscription();
  if (present && !hasKey(present, key)) await present.unsubscribe();
  return manager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(key) });
}

function hasKey({ options }, key) {
  if (!options?.applicationServerKey) return true; // the browser does not report the key
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

/** Resolves to the digest with which the server identifies an endpoint. */
async function digestOf(endpoint) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Renews the registration of this browser after the user has signed in again, or if the endpoint or the server's key
 * has changed. Ends a subscription that the user has removed elsewhere or that belongs to another user.
 */
export async function renew(present) {
  if ((await digestOf(present.endpoint)) === root.dataset.push) return;
  const { known, key } = await post(ADDRESS, { act: "refresh", ...valuesOf(present) }, "");
  if (!known || !key) await present.unsubscribe();
  else if (!hasKey(present, key)) {
    const made = await subscribe((await registration()).pushManager, key);
    await post(ADDRESS, { act: "refresh", ...valuesOf(made) }, "");
  }
}
