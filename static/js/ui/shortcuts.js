// Keys that work on the whole page: "?" for help, Shift+Escape to return to the composer.
import { isBehind, offer, offered, shown } from "./commands.js";
import { answerOf, copyOf, make } from "./dom.js";
import { field } from "./field.js";
import { words } from "./i18n.js";
import { late } from "./late.js";

const FIELDS = "input, textarea, select, [contenteditable]";

/** Updates the dialog. */
async function fillIn(dialog) {
  // The composer's list has Escape, which stops the agent.
  const commands = offered().filter(({ id, keys }) => keys && id !== "stop");
  dialog.querySelector("[data-actions]").replaceChildren(...commands.map(row));
  const messages = dialog.querySelector("[data-messages]");
  const menu = messages && (await late(() => import("../messages/actions.js"))); // home has no messages
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

export function connect() {
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
