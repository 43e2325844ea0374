// The queue above the composer: changing one's own message until it is delivered, and folding when there are many (RUN-06).
import { on } from "./actions.js";
import { giveBack } from "./composer.js";
import { field, TOUCH } from "./field.js";
import { late } from "./late.js";
import { ask } from "./page.js";
import { toast } from "./toast.js";
import { fill, words } from "./words.js";

const MANY = 3;
const queue = document.getElementById("queue");
const fold = document.querySelector("[data-action=fold-queue]");
let folded = true;
let held = null; // what has the focus in the queue

on("edit-queued", async (button) => (await late(() => import("./queue_edit.js")))?.edit(button.closest(".queued")));
on("withdraw", (button) => withdraw(button.closest(".queued")));
on("fold-queue", () => {
  folded = !folded;
  count();
});
document.addEventListener("focusin", ({ target }) => (held = queue.contains(target) ? target : null));
new MutationObserver(changed).observe(queue, { childList: true, subtree: true, attributeFilter: ["hidden"] });
count();

function changed() {
  count();
  // Whoever was on a message that has been delivered goes on in the composer.
  if (held?.isConnected === false && document.activeElement === document.body) field?.focus();
}

/** Tells how many wait; many are folded to the next one, but not while one of them is being changed. */
function count() {
  const waiting = [...queue.children].filter((message) => !message.hidden).length;
  const isFolded = folded && waiting >= MANY && !queue.querySelector("form");
  queue.classList.toggle("folded", isFolded);
  fold.hidden = waiting < MANY;
  fold.ariaExpanded = String(!isFolded);
  fold.firstElementChild.textContent = fill(words.queuedMany, { count: waiting });
}

/** What was withdrawn goes back to where it was written, unless something else stands there now. */
async function withdraw(message) {
  const text = textOf(message);
  const withdrawn = await ask({ type: "withdraw", id: message.id });
  if (!withdrawn) return;
  const back = () => giveBack({ text, files: withdrawn.attachments });
  if (field.value) toast(words.withdrawn, { action: { label: words.undo, run: back } });
  else back();
  if (!TOUCH.matches) field.focus();
}

/** What somebody was making of a message that is no longer queued; "" if nothing. */
export function unsaved(message) {
  const text = message?.matches(".queued") ? message.querySelector("form textarea") : null;
  return text && text.value !== textOf(message) ? text.value : "";
}

export const textOf = (message) => message.querySelector(".queued-text").textContent;
