// The browser's notifications of this page, for a user who looks elsewhere and wants them.
import { go } from "./leaving.js";
import * as push from "./push.js";

const root = document.documentElement;

/** Notifies of a session. Of those about one session the last is shown; a click leads to `url`, if that is another page. */
export function notifyElsewhere(title, body, { session, url = location.pathname }) {
  const wanted = root.dataset.notify === "yes" && globalThis.Notification?.permission === "granted";
  if (!wanted || (!document.hidden && document.hasFocus())) return;
  const onclick = () => {
    window.focus();
    if (url !== location.pathname) go(url);
  };
  const icon = document.getElementById("favicon")?.href;
  push.notify(title, { body, tag: session, icon, url, onclick }).catch(() => {});
}
