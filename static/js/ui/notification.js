// A notification of the browser. Pages load this module only for users who have turned notifications on.
import { readStored, writeStored } from "../net/storage.js";
import { words } from "./i18n.js";
import { registration } from "./push.js";

// A notification that replaces another one alerts the user only if the last alert is older, because all tabs report an
// event, and then a push message. service_worker.js has the same rule.
const QUIET_MS = 15_000;
const ALERT_NAME = "parley:alert"; // the tag and the time of the last alert of a page

// Each page answers the others whether the user is looking at it. Unloaded and frozen pages do not answer.
const channel = new BroadcastChannel("parley:in-view");
const ANSWER_MS = 200;

function answerPage({ data: { asked } }) {
  const isSeen = asked === location.pathname && !document.hidden && document.hasFocus();
  if (isSeen) channel.postMessage({ seen: asked });
}

/** Begins to answer other pages. Has no further effect if it is called again. */
export const connect = () => channel.addEventListener("message", answerPage);

/** Resolves to whether the user is looking at a page of this path in another tab or window. */
function isSeenElsewhere(path) {
  const listening = new AbortController();
  const answer = new Promise((resolve) => {
    const listen = ({ data: { seen } }) => seen === path && resolve(true);
    channel.addEventListener("message", listen, { signal: listening.signal });
    channel.postMessage({ asked: path });
    setTimeout(resolve, ANSWER_MS, false);
  });
  return answer.finally(() => listening.abort());
}

/**
 * Shows a notification, unless the user is looking at its session in another tab. Prefers the service worker, which
 * phones require and which can replace push messages.
 */
export async function showNotification(title, { onclick, url, ...others }) {
  connect();
  if (await isSeenElsewhere(url)) return;
  const worker = await registration();
  const shownAt = await alertTimeOfShown(worker, others.tag);
  // Another tab may have alerted the user already. Nothing waits from here to writeStored.
  const lastAlert = Math.max(lastAlertOf(others.tag), shownAt);
  const renotify = Date.now() - lastAlert > QUIET_MS; // by default, browsers replace notifications silently
  const alertedAt = renotify ? Date.now() : lastAlert;
  writeStored(ALERT_NAME, `${others.tag} ${alertedAt}`);
  const options = { ...others, renotify };
  // As in push messages, which are also read outside of the page.
  const heading = title === words.newSession ? words.untitledSession : title;
  if (worker?.active) return worker.showNotification(heading, { ...options, data: { url, alertedAt } });
  try {
    const shown = new Notification(heading, options);
    shown.addEventListener("click", () => {
      onclick();
      shown.close();
    });
  } catch {
    // a phone without the service worker
  }
}

/** Resolves to the time of the last alert of the notification that is shown, such as a push message, or to 0. */
async function alertTimeOfShown(worker, tag) {
  const [shown] = (await worker?.getNotifications({ tag })) ?? [];
  return shown?.data?.alertedAt ?? 0;
}

/** Returns when a page last alerted the user to this tag, or 0. Other tabs of the browser count, too. */
function lastAlertOf(tag) {
  const [lastTag, time] = readStored(ALERT_NAME).split(" ");
  return lastTag === tag ? Number(time) : 0;
}
