// The queue above the composer: editing and removing messages, sending held ones, and folding when there are many (RUN-06).
import { on } from "./actions.js";
import { giveBack } from "./composer.js";
import { field } from "./field.js";
import { TOUCH } from "./keyboard.js";
import { late } from "./late.js";
import { ask } from "./page.js";
import { toast } from "./toast.js";
import { fill, words } from "./words.js";

const MANY = 3;
const queue = document.getElementById("queue");
const fold = document.querySelector("[data-action=fold-queue]");
const heldBar = document.querySelector(".held-bar");
let folded = true;
let focused = null; // what has the focus in the queue
const removing = new Set(); // ids of messages that this page removes

on("edit-queued", async (button) => (await late(() => import("./queue_edit.js")))?.edit(button.closest(".queued")));
on("withdraw", (button) => withdraw(button.closest(".queued")));
on("send-now", (button) => ask({ type: "send_now", id: button.closest(".queued").id }));
on("send-held", () => ask({ type: "send_now" }));
on("fold-queue", () => {
  folded = !folded;
  count();
});
document.addEventListener("focusin", ({ target }) => (focused = queue.contains(target) ? target : null));
new MutationObserver(changed).observe(queue, { childList: true, subtree: true, attributeFilter: ["hidden"] });
count();

function changed() {
  count();
  // The focus was on a message that is delivered now.
  if (focused?.isConnected === false && document.activeElement === document.body && !TOUCH.matches) field?.focus();
}

/** Tells how many wait; many are folded to the next one, but not while one of them is being changed. */
function count() {
  const waiting = [...queue.children].filter((message) => !message.hidden).length;
  const held = queue.querySelectorAll(".held").length;
  heldBar.hidden = !held;
  heldBar.querySelector("button").hidden = held < 2;
  const isFolded = folded && waiting >= MANY && !queue.querySelector("form");
  queue.classList.toggle("folded", isFolded);
  fold.hidden = waiting < MANY;
  fold.ariaExpanded = String(!isFolded);
  fold.firstElementChild.textContent = fill(words.queuedMany, { count: waiting });
}

/** Removes a message. One's own text goes back to the composer, unless something else is written there. */
async function withdraw(message) {
  const text = textOf(message);
  removing.add(message.id);
  const withdrawn = await ask({ type: "withdraw", id: message.id });
  if (!withdrawn) return removing.delete(message.id);
  if (!message.matches(".mine")) return toast(words.queuedRemoved);
  const back = () => giveBack({ text, files: withdrawn.attachments });
  if (field.value) toast(words.withdrawn, { action: { label: words.undo, run: back } });
  else back();
  if (!TOUCH.matches) field.focus();
}

/** A queued message is being taken off the page: its sender gets the text back if somebody else has removed it. */
export function removed(message) {
  if (!field || !message?.matches(".queued.mine") || removing.delete(message.id)) return;
  const text = unsaved(message) || textOf(message);
  toast(words.queuedRemovedByOther, { action: { label: words.putBack, run: () => giveBack({ text }) } });
}

/** What somebody was making of a message that is no longer queued; "" if nothing. */
export function unsaved(message) {
  const text = message?.matches(".queued") ? message.querySelector("form textarea") : null;
  return text && text.value !== textOf(message) ? text.value : "";
}

export const textOf = (message) => message.querySelector(".queued-text").textContent;
