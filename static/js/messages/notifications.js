// Tells somebody who looks elsewhere: by the tab, and if they want it by the browser, that their agent is done or waits.
import { words } from "../ui/i18n.js";
import { live, page } from "./session.js";

// What the browser's tab says: how much is unread, whose title it is, and by its icon how things are.

const icon = document.getElementById("favicon");
const now = { unread: 0, working: false, offline: false };

/** Takes what has changed ({unread}, {working}, {offline}) and shows it; without anything, the title anew. */
export function showInTab(changes = {}) {
  Object.assign(now, changes);
  const title = page.querySelector("[data-part=title]").textContent.trim();
  document.title = `${now.unread ? `(${now.unread}) ` : ""}${title} · Parley`;
  const address = icon.href.replace(/favicon[\w-]*\.svg$/, `favicon${state()}.svg`);
  if (icon.href !== address) icon.href = address;
}

/** The one that matters most, as the end of an icon's name. */
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

/** Only to who has asked for it, and looks elsewhere. */
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
    // phones let only service workers do this
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
