// A session that is archived: its owner can bring it back where the composer was.
import { on } from "./actions.js";
import { field } from "./field.js";
import { organise } from "./organise.js";
import { page } from "./page.js";

on("restore-session", () => organise("restore", [page.dataset.session]));

new MutationObserver(() => {
  const active = document.activeElement; // the button goes with its banner
  if (page.dataset.archived === "no" && (active === document.body || active.closest(".archived"))) field?.focus();
}).observe(page, { attributeFilter: ["data-archived"] });
