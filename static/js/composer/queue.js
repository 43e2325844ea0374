// The queue above the composer: editing and removing messages, sending held ones, and folding when there are many
// (RUN-06).
import { sendCommand } from "../messages/session.js";
import { onAction, TOUCH } from "../ui/commands.js";
import { field } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { lazyImport } from "../ui/loading.js";
import { showToast } from "../ui/toast.js";
import { restoreUnsent } from "./composer.js";

const FOLD_FROM = 3;
const queue = document.getElementById("queue");
const foldButton = document.querySelector("[data-action=fold-queue]");
const heldBar = document.querySelector(".held-bar");
let isFolded = true;
let focusedElement = null; // the focused element in the queue
const removingIds = new Set(); // ids of messages that this page removes

function handleChange() {
  updateQueue();
  // The message that had the focus was delivered.
  if (focusedElement?.isConnected === false && document.activeElement === document.body && !TOUCH.matches)
    field?.focus();
}

/** Shows the number of queued messages. Folds a long queue to its first message, unless one is being edited. */
function updateQueue() {
  const count = [...queue.children].filter((message) => !message.hidden).length;
  const heldCount = queue.querySelectorAll(".held").length;
  setHidden(heldBar, !heldCount);
  heldBar.querySelector(".one").hidden = heldCount > 1;
  for (const part of heldBar.querySelectorAll(".many, button")) setHidden(part, heldCount < 2);
  const isShortened = isFolded && count >= FOLD_FROM && !queue.querySelector("form");
  queue.classList.toggle("folded", isShortened);
  setHidden(foldButton, count < FOLD_FROM);
  foldButton.ariaExpanded = String(!isShortened);
  foldButton.firstElementChild.textContent = format(words.queuedMany, { count });
}

/** Shows or hides an element. If a hidden element had the focus, moves it to the field. */
function setHidden(element, isHidden) {
  if (isHidden && element.contains(document.activeElement) && !TOUCH.matches) field?.focus();
  element.hidden = isHidden;
}

/** Removes a message from the queue. The user's own text returns to the composer, if that is empty, or by Undo. */
async function withdraw(message) {
  const text = textOf(message);
  removingIds.add(message.id);
  const withdrawn = await sendCommand({ type: "withdraw", id: message.id });
  if (!withdrawn) return removingIds.delete(message.id);
  if (!message.matches(".mine")) return showToast(words.queuedRemoved);
  const back = () => restoreUnsent({ text, files: withdrawn.attachments });
  if (field.value) showToast(words.withdrawn, { action: { label: words.undo, run: back } });
  else back();
  if (!TOUCH.matches) field.focus();
}

/** Offers the text of a queued message to its sender, if another user removes it. Call it before the removal. */
export function offerRemovedText(message) {
  if (!field || !message?.matches(".queued.mine") || removingIds.delete(message.id)) return;
  const text = unsavedEdit(message) || textOf(message);
  showToast(words.queuedRemovedByOther, { action: { label: words.putBack, run: () => restoreUnsent({ text }) } });
}

/** Returns the unsaved edit of a message that is no longer queued, or "". */
export function unsavedEdit(message) {
  const text = message?.matches(".queued") ? message.querySelector("form textarea") : null;
  return text && text.value !== textOf(message) ? text.value : "";
}

const textOf = (message) => message.querySelector(".queued-text").textContent;

export function connect() {
  onAction("edit-queued", async (button) => {
    (await lazyImport(() => import("../messages/edit.js")))?.editQueued(button.closest(".queued"));
  });
  onAction("withdraw", (button) => withdraw(button.closest(".queued")));
  onAction("send-now", (button) => sendCommand({ type: "send_now", id: button.closest(".queued").id }));
  onAction("send-held", () => sendCommand({ type: "send_now" }));
  onAction("fold-queue", () => {
    isFolded = !isFolded;
    updateQueue();
  });
  document.addEventListener("focusin", ({ target }) => (focusedElement = queue.contains(target) ? target : null));
  new MutationObserver(handleChange).observe(queue, { childList: true, subtree: true, attributeFilter: ["hidden"] });
  updateQueue();
}
