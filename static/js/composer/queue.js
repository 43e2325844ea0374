// The queue above the composer: editing and removing messages, sending held ones, and folding when there are many (RUN-06).
import { ask } from "../messages/session.js";
import { on, TOUCH } from "../ui/commands.js";
import { field } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { toast } from "../ui/toast.js";
import { giveBack } from "./composer.js";

const MANY = 3;
const queue = document.getElementById("queue");
const fold = document.querySelector("[data-action=fold-queue]");
const heldBar = document.querySelector(".held-bar");
let folded = true;
let focused = null; // the focused element in the queue
const removing = new Set(); // ids of messages that this page removes

function changed() {
  count();
  // The focus was on a message that has been delivered.
  if (focused?.isConnected === false && document.activeElement === document.body && !TOUCH.matches) field?.focus();
}

/** Shows the number of queued messages; folds many to the next one, but not while one is being edited. */
function count() {
  const waiting = [...queue.children].filter((message) => !message.hidden).length;
  const held = queue.querySelectorAll(".held").length;
  hide(heldBar, !held);
  hide(heldBar.querySelector("button"), held < 2);
  const isFolded = folded && waiting >= MANY && !queue.querySelector("form");
  queue.classList.toggle("folded", isFolded);
  hide(fold, waiting < MANY);
  fold.ariaExpanded = String(!isFolded);
  fold.firstElementChild.textContent = fill(words.queuedMany, { count: waiting });
}

/** Shows or hides an element; its focus goes to the field. */
function hide(element, isHidden) {
  if (isHidden && element.contains(document.activeElement) && !TOUCH.matches) field?.focus();
  element.hidden = isHidden;
}

/** Removes a message. The user's own text returns to the composer, unless there is another text. */
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

/** Called before a queued message leaves the page: its sender gets the text back if another person removed it. */
export function removed(message) {
  if (!field || !message?.matches(".queued.mine") || removing.delete(message.id)) return;
  const text = unsaved(message) || textOf(message);
  toast(words.queuedRemovedByOther, { action: { label: words.putBack, run: () => giveBack({ text }) } });
}

/** Returns the unsaved edit of a message that is no longer queued; "" if there is none. */
export function unsaved(message) {
  const text = message?.matches(".queued") ? message.querySelector("form textarea") : null;
  return text && text.value !== textOf(message) ? text.value : "";
}

const textOf = (message) => message.querySelector(".queued-text").textContent;

export function connect() {
  on("edit-queued", async (button) => {
    (await late(() => import("../messages/edit.js")))?.editQueued(button.closest(".queued"));
  });
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
}
