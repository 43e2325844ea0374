// The header: what can be done with the session as a whole, and with one's own settings.
import { offerAccount } from "./account.js";
import { on } from "./actions.js";
import { copyWords } from "./clipboard.js";
import { offer, offered } from "./deeds.js";
import { late } from "./late.js";
import { openMenu } from "./menu.js";
import { ask, canEdit, isGuest, page } from "./page.js";
import { unlessOvertaken } from "./popover.js";
import { toast } from "./toast.js";
import { words } from "./words.js";

const at = (id) => document.getElementById(id);
// What the menu shows, in this order and with a line between the groups; who has built a deed has offered it.
const GROUPS = [
  ["rename", "share", "find", "panel", "fork", "export", "removed"],
  ["pin", "archive", "restore", "leave", "delete"],
];
const DANGEROUS = ["delete", "leave"];

on("model", async (button) => (await unlessOvertaken(late(() => import("./model_picker.js"))))?.openPicker(button));
on("choose-model", () => at("model").click());
on("usage", openUsage);
on("more", (button) => openMenu(button, items(), { label: words.more }));
on("share", openShare);

function items() {
  const deeds = new Map(offered().map((deed) => [deed.id, deed]));
  const groups = GROUPS.map((ids) => ids.filter((id) => deeds.has(id)).map((id) => item(deeds.get(id))));
  return groups.filter((group) => group.length).flatMap((group, at) => (at ? [{ separator: true }, ...group] : group));
}

const item = ({ id, label, icon, keys, run }) => ({ label, icon, keys, run: () => run(""), danger: DANGEROUS.includes(id) });

async function openShare(button) {
  const dialog = at(button.dataset.dialog);
  dialog.showModal();
  (await late(() => import("./share.js")))?.follow(dialog);
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

/** Offers what the picker offers, one kind of it by its name behind a "/". */
function offerChoice(id, label, icon) {
  const named = () => late(() => import("./model_command.js"));
  const choices = async () => (await named())?.choices(id) ?? [];
  const run = async (name) => (name ? ((await named())?.choose(id, name) ?? false) : at("model").click());
  offer({ id, label, icon, slash: id, run, choices });
}

async function copyLink() {
  toast((await copyWords(location.href.split("#")[0])) ? words.linkCopied : words.notCopied);
}

if (canEdit) {
  offer({ id: "rename", label: words.rename, icon: "pencil", slash: "rename", run: rename });
}
if (canEdit && !isGuest) {
  offerChoice("model", words.chooseModel, "cpu");
  if (page.querySelector("[data-part=agent] bdi")) offerChoice("agent", words.chooseAgent, "bot");
}
offer({ id: "usage", label: words.usage, icon: "gauge", words: words.tokens, run: () => openUsage(figures()) });
offer({ id: "share", label: at("share-title").textContent, icon: "users", slash: "share", run: () => document.querySelector(".share-button").click() });
offer({ id: "copy-link", label: words.copyLink, icon: "link", run: copyLink });
offerAccount();
