// Shared by all pages with the session list: the modules that each of them needs, and keys that work on the whole page.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import * as account from "../sidebar/account.js";
import * as signOut from "../sidebar/sign_out.js";
import * as clipboard from "../ui/clipboard.js";
import * as commands from "../ui/commands.js";
import { isBehind, offer, offered, shown } from "../ui/commands.js";
import { answerOf, confirmed, copyOf, make } from "../ui/dom.js";
import * as faces from "../ui/faces.js";
import { field } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import * as loading from "../ui/late.js";
import * as leaving from "../ui/leaving.js";
import * as notices from "../ui/notice.js";
import * as popover from "../ui/popover.js";
import * as preferences from "../ui/preferences.js";
import * as push from "../ui/push.js";
import * as toasts from "../ui/toast.js";

export function connectCommon() {
  loading.connectAll(
    commands,
    faces,
    notices,
    popover,
    preferences,
    push,
    toasts,
    loading,
    leaving,
    signOut,
    clipboard,
    account,
  );
  connectShortcuts();
  limitHtmx();
  document.addEventListener("htmx:confirm", confirmRequest);
}

// At its start htmx looks at every attribute of the page for its own ones, and the browser keeps an object for each that was
// looked at: thousands. Its own elements are few.

const ITS_OWN = "[hx-get], [hx-post]";

function limitHtmx() {
  document.addEventListener("htmx:before:process", (event) => {
    if (event.target !== document.body) return;
    event.preventDefault();
    for (const element of document.querySelectorAll(ITS_OWN)) htmx.process(element);
  });
}

/** Asks before a request with hx-confirm, in place of the browser's own dialog. */
async function confirmRequest(event) {
  event.preventDefault();
  const { ctx, issueRequest, dropRequest } = event.detail;
  const { confirmTitle, confirmButton } = ctx.sourceElement.dataset;
  if (await confirmed({ title: confirmTitle, text: ctx.confirm, button: confirmButton })) issueRequest();
  else dropRequest();
}

// "?" for help, Shift+Escape to return to the composer.

const FIELDS = "input, textarea, select, [contenteditable]";

/** Updates the dialog. */
async function fillIn(dialog) {
  // The composer's list has Escape, which stops the agent.
  const withKeys = offered().filter(({ id, keys }) => keys && id !== "stop");
  dialog.querySelector("[data-actions]").replaceChildren(...withKeys.map(row));
  const messages = dialog.querySelector("[data-messages]");
  const menu = messages && (await loading.late(() => import("../messages/actions.js"))); // home has no messages
  if (menu) messages.replaceChildren(...menu.keysOfMessages().map(row));
  for (const keys of dialog.querySelectorAll("kbd")) keys.textContent = shown(keys.textContent);
}

function row({ label, keys }) {
  return make("div", {}, make("dt", { textContent: label }), make("dd", {}, make("kbd", { textContent: keys })));
}

async function help() {
  const dialog = copyOf("shortcuts");
  await fillIn(dialog);
  if (!isBehind()) answerOf(dialog);
}

function connectShortcuts() {
  offer({ id: "keys", label: words.shortcuts, icon: "keyboard", keys: "?", slash: "keys", run: help });
  if (field)
    offer({
      id: "write",
      label: words.writeMessage,
      icon: "message-square",
      keys: "Shift+Esc",
      run: () => field.focus(),
    });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isBehind()) return;
    if (event.key === "?" && !event.target.closest?.(FIELDS)) help();
    else if (event.key === "Escape" && event.shiftKey) field?.focus();
    else return;
    event.preventDefault();
  });
}
