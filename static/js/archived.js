// A session that is archived: its owner can bring it back where the composer was.
import { on } from "./actions.js";
import { field } from "./field.js";
import { TOUCH } from "./keyboard.js";
import { organise } from "./organise.js";
import { page } from "./page.js";

let isRestoring = false; // by the banner's button, which has the focus and goes with the banner

on("restore-session", async () => {
  isRestoring = true;
  await organise("restore", [page.dataset.session]);
});

new MutationObserver(([{ oldValue }]) => {
  const isRestored = oldValue === "yes" && page.dataset.archived === "no";
  if (isRestored && isRestoring && !TOUCH.matches) field?.focus();
  if (isRestored) isRestoring = false;
}).observe(page, { attributeFilter: ["data-archived"], attributeOldValue: true });
