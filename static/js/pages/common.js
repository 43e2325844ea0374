// Connects the modules of all pages with the session list, the keys of the whole page, and htmx.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import * as account from "../sidebar/account.js";
import * as signOut from "../sidebar/sign_out.js";
import * as clipboard from "../ui/clipboard.js";
import * as commands from "../ui/commands.js";
import { addCommand, hasControl, isDialogOpen } from "../ui/commands.js";
import { askToConfirm } from "../ui/dom.js";
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

// Ctrl+/ for the list of keys, Shift+Escape to return to the composer.

const openKeys = async () => (await loading.lazyImport(() => import("../dialogs/keys.js")))?.openKeys();

function connectShortcuts() {
  addCommand({ id: "keys", label: words.shortcuts, icon: "keyboard", keys: "Ctrl+/", slash: "keys", run: openKeys });
  if (field)
    addCommand({
      id: "write",
      label: words.writeMessage,
      icon: "message-square",
      keys: "Shift+Esc",
      run: () => field.focus(),
    });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || isDialogOpen()) return;
    if (hasControl(event) && event.key === "/") openKeys();
    else if (event.key === "Escape" && event.shiftKey) field?.focus();
    else return;
    event.preventDefault();
  });
}
