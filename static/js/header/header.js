// The header: what can be done with the session as a whole, and with one's own settings.
import { ask, canEdit, isGuest, live, page } from "../messages/session.js";
import { signIn } from "../net/http.js";
import { offerAccount } from "../sidebar/account.js";
import { organise } from "../sidebar/organise.js";
import { copyWords } from "../ui/clipboard.js";
import { offer, offered, on, TOUCH } from "../ui/commands.js";
import { field } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { openMenu } from "../ui/menu.js";
import { unlessOvertaken } from "../ui/popover.js";
import { toast } from "../ui/toast.js";
import { connectChoice } from "./choice.js";

// A session that is archived: its owner can bring it back where the composer was.

let isRestoring = false; // by the banner's button, which has the focus and goes with the banner

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

// How the page hangs on the server: the word in the header, and what to do when it is over.

const line = document.getElementById("connection");

function said(state, reason) {
  if (state !== "closed") return words[state];
  return { "no-access": words.noAccess, gone: words.gone, "signed-out": words.signedOut }[reason];
}

/** What was read can still be read; everything else is elsewhere. */
function wayHome() {
  const link = document.createElement("a");
  link.href = page.dataset.home;
  link.textContent = words.yourSessions;
  return link;
}

function connectConnection() {
  live.addEventListener("state", ({ detail: { state, reason } }) => {
    line.dataset.state = state;
    page.toggleAttribute("data-over", state === "closed");
    line.textContent = said(state, reason);
    if (state === "closed" && reason !== "signed-out") line.append(" ", wayHome());
    if (reason === "signed-out") signIn();
  });
}

const at = (id) => document.getElementById(id);
// What the menu shows, in this order and with a line between the groups; who has built a deed has offered it.
const GROUPS = [
  ["rename", "share", "find", "panel", "fork", "export", "removed"],
  ["pin", "archive", "restore", "leave", "delete"],
];
const DANGEROUS = ["delete", "leave"];

function items() {
  const deeds = new Map(offered().map((deed) => [deed.id, deed]));
  const groups = GROUPS.map((ids) => ids.filter((id) => deeds.has(id)).map((id) => item(deeds.get(id))));
  return groups.filter((group) => group.length).flatMap((group, at) => (at ? [{ separator: true }, ...group] : group));
}

const item = ({ id, label, icon, keys, run }) => ({ label, icon, keys, run: () => run(""), danger: DANGEROUS.includes(id) });

async function openShare(button) {
  const dialog = at(button.dataset.dialog);
  dialog.showModal();
  (await late(() => import("../dialogs/share.js")))?.follow(dialog);
}

async function openUsage(button) {
  (await unlessOvertaken(late(() => import("./usage.js"))))?.openUsage(button);
}

/** There is nothing to see in the header while nothing was used, nor on small screens. */
function figures() {
  return at("figures").checkVisibility() ? at("figures") : at("more");
}

async function rename(title) {
  if (title) return (await ask({ type: "rename", title })) !== null;
  at("rename").click();
}

async function copyLink() {
  toast((await copyWords(location.href.split("#")[0])) ? words.linkCopied : words.notCopied);
}

function connectHeader() {
  on("choose-model", () => at("model").click());
  on("usage", openUsage);
  on("more", (button) => openMenu(button, items(), { label: words.more }));
  on("share", openShare);
  if (canEdit) {
    offer({ id: "rename", label: words.rename, icon: "pencil", slash: "rename", run: rename });
  }
  if (canEdit && !isGuest) connectChoice(ask);
  offer({ id: "usage", label: words.usage, icon: "gauge", words: words.tokens, run: () => openUsage(figures()) });
  offer({ id: "share", label: at("share-title").textContent, icon: "users", slash: "share", run: () => document.querySelector(".share-button").click() });
  offer({ id: "copy-link", label: words.copyLink, icon: "link", run: copyLink });
  offerAccount();
}

export function connect() {
  connectArchived();
  connectConnection();
  connectHeader();
}
