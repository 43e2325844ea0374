// Connects the modules of all pages with the session list, the keys of the whole page, and htmx.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import * as account from "../sidebar/account.js";
import * as signOut from "../sidebar/sign_out.js";
import * as clipboard from "../ui/clipboard.js";
import * as commands from "../ui/commands.js";
import { addCommand, availableCommands, isDialogOpen, keyLabel } from "../ui/commands.js";
import { askToConfirm, cloneTemplate, createElement, openDialog } from "../ui/dom.js";
import * as faces from "../ui/faces.js";
import { field } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import * as loading from "../ui/loading.js";
import * as navigation from "../ui/navigation.js";
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
    navigation,
    signOut,
    clipboard,
    account,
  );
  connectShortcuts();
  limitHtmx();
  document.addEventListener("htmx:confirm", confirmRequest);
}

// htmx reads every attribute of the page when it starts, and the browser keeps an object for each of them. To save
// thousands of objects, htmx processes only the few elements that use it.

const HTMX_ELEMENTS = "[hx-get], [hx-post]";

function limitHtmx() {
  document.addEventListener("htmx:before:process", (event) => {
    if (event.target !== document.body) return;
    event.preventDefault();
    for (const element of document.querySelectorAll(HTMX_ELEMENTS)) htmx.process(element);
  });
}

/** Asks the user before a request with hx-confirm. The dialog replaces the browser's own. */
async function confirmRequest(event) {
  event.preventDefault();
  const { ctx, issueRequest, dropRequest } = event.detail;
  const { confirmTitle, confirmButton } = ctx.sourceElement.dataset;
  if (await askToConfirm({ title: confirmTitle, text: ctx.confirm, button: confirmButton })) issueRequest();
  else dropRequest();
}

// "?" for help, Shift+Escape to return to the composer.

const FIELDS = "input, textarea, select, [contenteditable]";

/** Fills in the help dialog with the present keys. */
async function fillKeys(dialog) {
  // Escape, which stops the agent, is in the composer's list.
  const withKeys = availableCommands().filter(({ id, keys }) => keys && id !== "stop");
  dialog.querySelector("[data-actions]").replaceChildren(...withKeys.map(createKeyRow));
  const messages = dialog.querySelector("[data-messages]");
  const menu = messages && (await loading.lazyImport(() => import("../messages/actions.js"))); // home has no messages
  if (menu) messages.replaceChildren(...menu.messageKeys().map(createKeyRow));
  for (const keys of dialog.querySelectorAll("kbd")) keys.textContent = keyLabel(keys.textContent);
}

function createKeyRow({ label, keys }) {
  return createElement(
    "div",
    {},
    createElement("dt", { textContent: label }),
    createElement("dd", {}, createElement("kbd", { textContent: keys })),
  );
}

async function openHelp() {
  const dialog = cloneTemplate("shortcuts");
  await fillKeys(dialog);
  if (!isDialogOpen()) openDialog(dialog);
}

function connectShortcuts() {
  addCommand({ id: "keys", label: words.shortcuts, icon: "keyboard", keys: "?", slash: "keys", run: openHelp });
  if (field)
    addCommand({
      id: "write",
      label: words.writeMessage,
      icon: "message-square",
      keys: "Shift+Esc",
      run: () => field.focus(),
    });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isDialogOpen()) return;
    if (event.key === "?" && !event.target.closest?.(FIELDS)) openHelp();
    else if (event.key === "Escape" && event.shiftKey) field?.focus();
    else return;
    event.preventDefault();
  });
}
