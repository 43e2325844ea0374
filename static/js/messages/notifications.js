// Notifies a user who looks elsewhere, by the tab and, if wanted, by the browser, that the agent is done or waits.
import { words } from "../ui/i18n.js";
import { live, page } from "./session.js";

// The browser's tab: the unread count, the title, and the state as an icon.

const icon = document.getElementById("favicon");
const now = { unread: 0, working: false, offline: false };

/** Updates the tab with changed values ({unread}, {working}, {offline}); without any, updates the title. */
export function showInTab(changes = {}) {
  Object.assign(now, changes);
  const title = page.querySelector("[data-part=title]").textContent.trim();
  document.title = `${now.unread ? `(${now.unread}) ` : ""}${title} · Parley`;
  const address = icon.href.replace(/favicon[\w-]*\.svg$/, `favicon${state()}.svg`);
  if (icon.href !== address) icon.href = address;
}

/** Returns the most important state, as the end of an icon's name. */
function state() {
  if (now.offline) return "-offline";
  if (now.working) return "-working";
  return now.unread ? "-unread" : "";
}

// "Idle" also follows Stop and errors. Shorter turns are not worth a notification.
const TELL_AFTER_MS = 20_000;
let began = page.dataset.status === "idle" ? null : performance.now();

function turned() {
  const { status } = page.dataset;
  const took = began === null ? 0 : performance.now() - began;
  showInTab({ working: status !== "idle" && status !== "waiting" });
  if (status === "waiting") tell(words.agentWaits);
  else if (status === "idle" && took > TELL_AFTER_MS) tell(words.agentDone);
  if (status === "idle") began = null;
  else began ??= performance.now();
}

/** Whether to notify: the user wants it and looks elsewhere. */
function tell(words) {
  const wanted = document.documentElement.dataset.notify === "yes" && globalThis.Notification?.permission === "granted";
  if (!wanted || (!document.hidden && document.hasFocus())) return;
  try {
    const title = page.querySelector("[data-part=title]").textContent.trim();
    const shown = new Notification(title, { body: words, tag: page.dataset.session, icon: icon.href });
    shown.addEventListener("click", () => {
      window.focus();
      shown.close();
    });
  } catch {
    // on phones only service workers can do this
  }
}

export function connect() {
  new MutationObserver(turned).observe(page, { attributeFilter: ["data-status"] });
  document.addEventListener("parley:unread", ({ detail }) => showInTab({ unread: detail.count }));
  live.addEventListener("state", ({ detail: { state } }) =>
    showInTab({ offline: ["offline", "reconnecting", "closed"].includes(state) }),
  );
  showInTab({ working: began !== null });
}
