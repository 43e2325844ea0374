// The list of shortcuts: those of the composer stand in its template, those of deeds are added.
import { offered } from "./deeds.js";
import { shown } from "./keyboard.js";
import { late } from "./late.js";

/** Brings a dialog of shortcuts up to date. */
export async function fillIn(dialog) {
  // The composer's own list says when Escape stops the agent.
  const deeds = offered().filter(({ id, keys }) => keys && id !== "stop");
  dialog.querySelector("[data-actions]").replaceChildren(...deeds.map(row));
  const messages = dialog.querySelector("[data-messages]");
  const menu = messages && (await late(() => import("./message_menu.js"))); // home has no messages
  if (menu) messages.replaceChildren(...menu.keysOfMessages().map(row));
  for (const keys of dialog.querySelectorAll("kbd")) keys.textContent = shown(keys.textContent);
}

function row({ label, keys }) {
  const element = document.createElement("div");
  const [what, how, key] = ["dt", "dd", "kbd"].map((name) => document.createElement(name));
  what.textContent = label;
  key.textContent = keys;
  how.append(key);
  element.append(what, how);
  return element;
}
