// The push subscription of this browser, as far as every page needs it.

export const isSupported = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

export const registration = () => navigator.serviceWorker?.getRegistration().catch(() => undefined);

/** Resolves to this browser's subscription, or to null. */
export const subscription = async () =>
  isSupported() ? ((await (await registration())?.pushManager.getSubscription()) ?? null) : null;

/** Renews the subscription. Most browsers have none, so the module for it is imported only if there is one. */
async function renewSubscription() {
  const present = await subscription();
  if (present) await (await import("./push_subscription.js")).renew(present);
}

export function connect() {
  renewSubscription().catch(() => {}); // the next page tries again
}
