// The dialog with the versions of a text, or with removed messages, which can be restored. It updates while it is open.
import { tryRequest } from "../messages/requests.js";
import { restoreAttempt } from "../messages/retry.js";
import { live } from "../messages/session.js";
import { fetchJson, fetchText } from "../net/http.js";
import { onAction } from "../ui/commands.js";
import { createElement, parseHtml } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";
import { unlessUserActed } from "../ui/popover.js";
import { localizeTimes } from "../ui/time.js";
import { showToast } from "../ui/toast.js";

const DELAY_MS = 150;
const PROMPT_ID = "system_prompt";
let dialog = null;
let address = "";
let shownHtml = "";
let refreshTimer = 0;
let lastRequest = 0;

/**
 * Opens the dialog with the content of a path below the session's address, unless the user acts before it has loaded.
 */
export async function show(path) {
  const html = await unlessUserActed(fetchText(location.pathname + path));
  if (html === undefined) return;
  if (html === null) return showNotice(words.notLoaded);
  clearNoticeAfterSuccess();
  dialog?.remove();
  address = location.pathname + path;
  shownHtml = html;
  dialog = parseHtml(html).querySelector("dialog");
  localizeTimes(dialog);
  document.body.append(dialog);
  dialog.addEventListener("close", handleClose, { once: true });
  dialog.showModal();
}

function handleClose() {
  clearTimeout(refreshTimer);
  const { of } = dialog.dataset;
  dialog.remove();
  dialog = null;
  // The element that opened the dialog may have been replaced.
  if (document.activeElement === document.body)
    (document.getElementById(of) ?? document.getElementById("main")).focus({ preventScroll: true });
}

/** Updates the dialog. Closes opened versions, because their numbers can belong to other texts then. */
async function refresh() {
  const current = dialog;
  const request = ++lastRequest;
  const html = await fetchText(address);
  if (html === null || html === shownHtml || current !== dialog || !current || request !== lastRequest) return;
  shownHtml = html;
  const fresh = parseHtml(html).querySelector("dialog");
  const hadFocus = bodyOf(current).contains(document.activeElement);
  current.dataset.newest = fresh.dataset.newest;
  localizeTimes(fresh);
  bodyOf(current).replaceChildren(...bodyOf(fresh).childNodes);
  if (hadFocus) bodyOf(current).focus({ preventScroll: true });
}

const bodyOf = (element) => element.querySelector(".dialog-body");

/** Resolves to the full text of a version and the present text, or after a notice to null if the request failed. */
async function fetchVersion({ dataset: { id = dialog.dataset.of, at } }) {
  const value = await fetchJson(`${location.pathname}version?${new URLSearchParams({ id, at })}`);
  if (!value) showToast(words.notLoaded);
  return value;
}

async function toggleWhole(button) {
  const bar = button.parentElement;
  const open = bar.parentElement.querySelector(":scope > .whole");
  if (open) open.remove();
  else {
    const value = await fetchVersion(button);
    if (!value || !button.isConnected || bar.previousElementSibling?.matches(".whole")) return; // requested twice
    bar.before(createWhole(value.text));
  }
  button.setAttribute("aria-expanded", String(!open));
}

function createWhole(text) {
  return createElement("pre", {
    className: "whole",
    tabIndex: 0,
    textContent: text,
    dir: "auto",
    role: "region",
    ariaLabel: words.versionWhole,
  });
}

async function restoreVersion(button) {
  const openedDialog = dialog;
  const { of } = openedDialog.dataset;
  const value = await fetchVersion(button);
  if (!value || openedDialog !== dialog) return;
  if (String(value.newest) !== openedDialog.dataset.newest) return showRefusal(words.justChanged);
  const prompt = { type: "set_system_prompt", system_prompt: value.text, seen: value.now };
  const command = of === PROMPT_ID ? prompt : { type: "edit", id: of, text: value.text, revision: value.revision };
  await tryRequest(() => live.request(command), { label: words.stopAndRestore, report: showToast });
}

function showRefusal(text) {
  showToast(text);
  refresh();
}

function restoreRemoved({ dataset: { id } }) {
  const task = async () => {
    await live.request({ type: "restore", id });
    showToast(words.messageRestored);
  };
  return tryRequest(task, { label: words.stopAndRestore, report: showToast });
}

async function loadOlder(button) {
  const item = button.parentElement;
  const html = await fetchText(`${address}${address.includes("?") ? "&" : "?"}before=${button.dataset.before}`);
  if (html === null) return showToast(words.notLoaded);
  const fresh = parseHtml(html);
  localizeTimes(fresh);
  const first = fresh.querySelector("li");
  if (!first) return item.remove();
  item.replaceWith(fresh);
  first.tabIndex = -1;
  first.focus({ preventScroll: true });
}

export function connect() {
  onAction("restore-attempt", (button) => restoreAttempt(button.dataset.id, showToast));
  onAction("version-whole", toggleWhole);
  onAction("version-restore", restoreVersion);
  onAction("restore-removed", restoreRemoved);
  onAction("older-changes", loadOlder);
  live.addEventListener("frame", ({ detail: { op } }) => {
    if (!dialog || !["message", "remove", "session", "synced"].includes(op)) return;
    clearTimeout(refreshTimer);
    refreshTimer = setTimeout(refresh, DELAY_MS);
  });
}
