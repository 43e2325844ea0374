// The dialog for versions of a text and for removed messages, with live updates and Restore.
import { restoreAttempt } from "../messages/actions.js";
import { insist } from "../messages/insist.js";
import { live } from "../messages/session.js";
import { textAt, valueAt } from "../net/http.js";
import { on } from "../ui/commands.js";
import { make, parse } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";

const SOON = 150;
const PROMPT = "system_prompt";
let dialog = null;
let address = "";
let shown = "";
let due = 0;

/** Opens the dialog from an address below the session's. */
export async function show(path) {
  const html = await textAt(location.pathname + path);
  if (html === null) return notice(words.notLoaded);
  settle();
  dialog?.remove();
  address = location.pathname + path;
  shown = html;
  dialog = parse(html).querySelector("dialog");
  localise(dialog);
  document.body.append(dialog);
  dialog.addEventListener("close", closed, { once: true });
  dialog.showModal();
}

function closed() {
  clearTimeout(due);
  const { of } = dialog.dataset;
  dialog.remove();
  dialog = null;
  // Its opener may have been rendered again.
  if (document.activeElement === document.body)
    (document.getElementById(of) ?? document.getElementById("main")).focus({ preventScroll: true });
}

/** Updates the dialog. Closes versions that the user has opened: they may belong to another text now. */
async function refresh() {
  const mine = dialog;
  const html = await textAt(address);
  if (html === null || html === shown || mine !== dialog || !mine) return;
  shown = html;
  const fresh = parse(html).querySelector("dialog");
  const hadFocus = bodyOf(mine).contains(document.activeElement);
  mine.dataset.newest = fresh.dataset.newest;
  localise(fresh);
  bodyOf(mine).replaceChildren(...bodyOf(fresh).childNodes);
  if (hadFocus) bodyOf(mine).focus({ preventScroll: true });
}

const bodyOf = (element) => element.querySelector(".dialog-body");

/** Fetches a version in full and the present text; null, after a notice, if that failed. */
async function version({ dataset: { id = dialog.dataset.of, at } }) {
  const value = await valueAt(`${location.pathname}version?${new URLSearchParams({ id, at })}`);
  if (!value) toast(words.notLoaded);
  return value;
}

async function toggleWhole(button) {
  const bar = button.parentElement;
  const open = bar.parentElement.querySelector(":scope > .whole");
  if (open) open.remove();
  else {
    const value = await version(button);
    if (!value || !button.isConnected || bar.previousElementSibling?.matches(".whole")) return; // requested twice
    bar.before(wholeOf(value.text));
  }
  button.setAttribute("aria-expanded", String(!open));
}

function wholeOf(text) {
  return make("pre", {
    className: "whole",
    tabIndex: 0,
    textContent: text,
    dir: "auto",
    role: "region",
    ariaLabel: words.versionWhole,
  });
}

async function restoreVersion(button) {
  const asked = dialog;
  const { of } = asked.dataset;
  const value = await version(button);
  if (!value || asked !== dialog) return;
  if (String(value.newest) !== asked.dataset.newest) return refused(words.justChanged);
  const prompt = { type: "set_system_prompt", system_prompt: value.text, seen: value.now };
  const command = of === PROMPT ? prompt : { type: "edit", id: of, text: value.text, revision: value.revision };
  await insist(() => live.request(command), { label: words.stopAndRestore, tell: toast });
}

function refused(text) {
  toast(text);
  refresh();
}

function restoreRemoved({ dataset: { id } }) {
  const task = async () => {
    await live.request({ type: "restore", id });
    toast(words.messageRestored);
  };
  return insist(task, { label: words.stopAndRestore, tell: toast });
}

async function older(button) {
  const item = button.parentElement;
  const html = await textAt(`${address}${address.includes("?") ? "&" : "?"}before=${button.dataset.before}`);
  if (html === null) return toast(words.notLoaded);
  const fresh = parse(html);
  localise(fresh);
  const first = fresh.querySelector("li");
  if (!first) return item.remove();
  item.replaceWith(fresh);
  first.tabIndex = -1;
  first.focus({ preventScroll: true });
}

export function connect() {
  on("restore-attempt", (button) => restoreAttempt(button.dataset.id, toast));
  on("version-whole", toggleWhole);
  on("version-restore", restoreVersion);
  on("restore-removed", restoreRemoved);
  on("older-changes", older);
  live.addEventListener("frame", ({ detail: { op } }) => {
    if (!dialog || !["message", "remove", "session", "synced"].includes(op)) return;
    clearTimeout(due);
    due = setTimeout(refresh, SOON);
  });
}
