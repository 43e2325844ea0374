// The ways to what was: the history of a message and of the system prompt, and what was removed. The rest comes late.
import { on } from "./actions.js";
import { offer } from "./deeds.js";
import { late } from "./late.js";
import { canEdit } from "./page.js";
import { close, unlessOvertaken } from "./popover.js";
import { words } from "./words.js";

/** Shows who made what of a message, or of the system prompt. */
export async function showHistory(of) {
  close();
  (await unlessOvertaken(late(() => import("./versions.js"))))?.show(`history?id=${of}`);
}

async function showRemoved() {
  (await late(() => import("./versions.js")))?.show("removed");
}

on("history", (button) => showHistory(button.dataset.of ?? button.closest("article").id));
offer({ id: "removed", label: words.removedMessages, words: words.removedWords, icon: "archive-restore", slash: "removed", run: showRemoved, can: () => canEdit });
