// The browser's notifications. They are shown if the user has turned them on and is not looking at the page.
import { navigate } from "./navigation.js";

const root = document.documentElement;

/** Returns the rows of the session list whose sessions wait for the user or mention the user. */
export const rowsThatNeedUser = () => [
  ...document.querySelectorAll("#session-list :is([data-waiting=yes], [data-mentioned=yes])"),
];

/** Shows a title in the browser's tab, after the number of what the user should look at, if there is any. */
export function showTabTitle(title, count) {
  document.title = `${count ? `(${count}) ` : ""}${title}`;
}

const areWanted = () => root.dataset.notify === "yes" && globalThis.Notification?.permission === "granted";
const load = () => import("./notification.js");

/** Loads the module for notifications, so that no notification is lost if the server cannot be reached later. */
export function preload() {
  if (areWanted())
    load()
      .then(({ connect }) => connect())
      .catch(() => {});
}

/** Shows a notification about a session, in place of its last one. A click goes to `url`, if that is another page. */
export function notifyIfAway(title, body, { session, url = location.pathname }) {
  if (!areWanted() || (!document.hidden && document.hasFocus())) return;
  const onclick = () => {
    window.focus();
    if (url !== location.pathname) navigate(url);
  };
  const icon = document.getElementById("favicon")?.href;
  load()
    .then(({ showNotification }) => showNotification(title, { body, tag: session, icon, url, onclick }))
    .catch(() => {});
}
