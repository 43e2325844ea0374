// The dialog that lists the keys.
import { availableCommands, isDialogOpen, keyLabel } from "../ui/commands.js";
import { cloneTemplate, createElement, openDialog } from "../ui/dom.js";
import { lazyImport } from "../ui/loading.js";

export async function openKeys() {
  const dialog = cloneTemplate("shortcuts");
  await fillKeys(dialog);
  if (!isDialogOpen()) openDialog(dialog);
}

/** Fills in the dialog with the present keys. */
async function fillKeys(dialog) {
  // Escape, which stops the agent, is in the composer's list.
  const withKeys = availableCommands().filter(({ id, keys }) => keys && id !== "stop");
  dialog.querySelector("[data-actions]").replaceChildren(...withKeys.map(createKeyRow));
  const messages = dialog.querySelector("[data-messages]");
  const menu = messages && (await lazyImport(() => import("../messages/actions.js"))); // home has no messages
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
