// Keys that work on the whole page: help with all of them ("?"), and the way back to the composer (Shift+Escape).
import { offer } from "./deeds.js";
import { field } from "./field.js";
import { isBehind } from "./keyboard.js";
import { late } from "./late.js";
import { words } from "./words.js";

const FIELDS = "input, textarea, select, [contenteditable]";
let dialog = null;

offer({ id: "keys", label: words.shortcuts, icon: "keyboard", keys: "?", slash: "keys", run: help });
if (field) offer({ id: "write", label: words.writeMessage, icon: "message-square", keys: "Shift+Esc", run: () => field.focus() });

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isBehind()) return;
  if (event.key === "?" && !event.target.closest?.(FIELDS)) help();
  else if (event.key === "Escape" && event.shiftKey) field?.focus();
  else return;
  event.preventDefault();
});

async function help() {
  const list = await late(() => import("./shortcut_list.js"));
  if (!list) return;
  if (!dialog) {
    dialog = document.getElementById("shortcuts").content.firstElementChild.cloneNode(true);
    document.body.append(dialog);
  }
  await list.fillIn(dialog);
  dialog.showModal();
}
