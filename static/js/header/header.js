// The header: actions on the session as a whole.
import { ask, canEdit, isGuest, live, page } from "../messages/session.js";
import { signIn } from "../net/http.js";
import { offerAccount } from "../sidebar/account.js";
import { organise } from "../sidebar/organise.js";
import { copyLink } from "../ui/clipboard.js";
import { itemsOf, offer, on, TOUCH } from "../ui/commands.js";
import { make } from "../ui/dom.js";
import { field } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { openBox, openMenu, place, unlessOvertaken } from "../ui/popover.js";
import { connectChoice } from "./choice.js";

// An archived session: its owner can restore it by a button in the composer's place.

let isRestoring = false; // by the banner's button, which loses the focus when the banner disappears

function connectArchived() {
  on("restore-session", async () => {
    isRestoring = true;
    await organise("restore", [page.dataset.session]);
  });
  new MutationObserver(([{ oldValue }]) => {
    const isRestored = oldValue === "yes" && page.dataset.archived === "no";
    if (isRestored && isRestoring && !TOUCH.matches) field?.focus();
    if (isRestored) isRestoring = false;
  }).observe(page, { attributeFilter: ["data-archived"], attributeOldValue: true });
}

// The connection: its state in the header, and the end of access.

const connection = document.getElementById("connection");

function said(state, reason) {
  if (state !== "closed") return words[state];
  return { "no-access": words.noAccess, gone: words.gone, "signed-out": words.signedOut }[reason];
}

/** After the end of access the messages stay readable; all actions are disabled. */
function wayHome() {
  return make("a", { href: page.dataset.home, textContent: words.yourSessions });
}

function connectConnection() {
  live.addEventListener("state", ({ detail: { state, reason } }) => {
    connection.dataset.state = state;
    page.toggleAttribute("data-over", state === "closed");
    connection.textContent = said(state, reason);
    if (state === "closed" && reason !== "signed-out") connection.append(" ", wayHome());
    if (reason === "signed-out") signIn();
  });
}

// The explanation of the header's figures.

/** Opens the explanation at a button. */
function openUsage(button) {
  const box = openBox(button, { className: "usage", label: words.usage });
  const known = document.querySelector("#figures [data-total]").dataset;
  if (!box) return;
  box.append(
    make("h2", { textContent: words.usage }),
    ...context(known),
    line(fill(words.usageTotal, { total: number(known.total) })),
    wayToContext(),
  );
  place();
  box.focus({ preventScroll: true });
}

function context({ used, window, percent }) {
  if (!used) return [line(words.usageNone)];
  if (!window) return [line(fill(words.usageNoWindow, { used: number(used) }))];
  const meter = make("meter", {
    max: 100,
    high: 80,
    low: 50,
    optimum: 0,
    value: Number(percent),
    ariaLabel: words.usage,
  });
  return [meter, line(fill(words.usageContext, { used: number(used), window: number(window) }))];
}

function wayToContext() {
  const properties = { type: "button", className: "button small", data: { action: "context-now" } };
  return make("button", properties, words.contextNext);
}

const number = (text) => Number(text).toLocaleString(document.documentElement.lang);
const line = (text) => make("p", { textContent: text });

const at = (id) => document.getElementById(id);
// The commands of the menu, in groups and in this order; other modules offer them.
const GROUPS = [
  ["rename", "share", "find", "panel", "fork", "export", "removed"],
  ["pin", "archive", "restore", "leave", "delete"],
];
async function openShare(button) {
  const dialog = at(button.dataset.dialog);
  dialog.showModal();
  (await late(() => import("../dialogs/share.js")))?.follow(dialog);
}

/** The header hides the figures while they are zero and on small screens. */
function figures() {
  return at("figures").checkVisibility() ? at("figures") : at("more");
}

async function rename(title) {
  if (title) return (await ask({ type: "rename", title })) !== null;
  at("rename").click();
}

function connectHeader() {
  on("choose-model", () => at("model").click());
  on("usage", openUsage);
  on("more", (button) => openMenu(button, GROUPS.map(itemsOf), { label: words.more }));
  on("share", openShare);
  if (canEdit) {
    offer({ id: "rename", label: words.rename, icon: "pencil", slash: "rename", run: rename });
  }
  if (canEdit && !isGuest) connectChoice(ask);
  offer({ id: "usage", label: words.usage, icon: "gauge", words: words.tokens, run: () => openUsage(figures()) });
  offer({
    id: "share",
    label: at("share-title").textContent,
    icon: "users",
    slash: "share",
    run: () => document.querySelector(".share-button").click(),
  });
  offer({ id: "copy-link", label: words.copyLink, icon: "link", run: () => copyLink(location.href.split("#")[0]) });
  offerAccount();
}

export function connect() {
  connectArchived();
  connectConnection();
  connectHeader();
}
