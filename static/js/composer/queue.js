// The queue above the composer: editing and removing messages, sending held ones, and folding when there are many (RUN-06).
import { ask, live } from "../messages/session.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import { on, TOUCH } from "../ui/commands.js";
import * as clash from "../ui/conflict_form.js";
import { copyOf } from "../ui/dom.js";
import { composing, field, fits } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { giveBack } from "./composer.js";

// Editing a queued message in place, without overwriting an edit from another tab unseen.

const nameOf = (id) => `parley:queued:${id}`;

/** Opens a field with the message's text, or with an unsaved edit of it. */
function edit(message) {
  if (message.querySelector("form")) return;
  const form = copyOf("edit-queued");
  const field = form.querySelector("textarea");
  const draft = keptInTab(nameOf(message.id));
  const seen = { text: textOf(message), revision: message.dataset.revision, saving: null, ...draft?.seen };
  field.value = draft?.written ?? seen.text;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save(message, form, seen);
  });
  form.addEventListener("click", ({ target }) => target.closest("[data-name=cancel]") && cancel(message, form, seen));
  field.addEventListener("keydown", (event) => keys(event, message, form, seen));
  field.addEventListener("input", () => remember(message, field.value, seen));
  message.append(form);
  message.classList.add("editing");
  field.focus();
  follow(message, form, seen);
}

/** Checks whether the message has changed, now and while it is being edited. */
function follow(message, form, seen) {
  const look = () => {
    if (!form.isConnected) watcher.disconnect();
    else if (![seen.text, seen.saving].includes(textOf(message))) choose(message, form, seen);
  };
  const watcher = new MutationObserver(look);
  watcher.observe(message, { childList: true });
  look();
}

async function save(message, form, seen) {
  const { value } = form.querySelector("textarea");
  const place = form.querySelector(".clash-place");
  if (clash.isOpen(place)) return clash.point(place);
  if (!value.trim() || value === seen.text) return close(message, form);
  if (!fits(value)) return;
  seen.saving = value;
  try {
    const { revision } = await live.request({
      type: "edit_queued",
      id: message.id,
      text: value,
      revision: Number(seen.revision),
    });
    Object.assign(seen, { text: value, revision, saving: null });
  } catch (refusal) {
    return refusal.code === "stale"
      ? choose(message, form, seen)
      : notice(refusal.message, { about: `edit:${message.id}` });
  }
  // Keep what the user has typed since.
  if (!form.isConnected) return;
  const { value: present } = form.querySelector("textarea");
  if (present === value) close(message, form);
  else remember(message, present, seen);
}

/** Shows the choice between this text and the one that was saved elsewhere. */
function choose(message, form, seen) {
  const field = form.querySelector("textarea");
  const place = form.querySelector(".clash-place");
  const take = () => close(message, form);
  const stand = ({ current, revision }) => {
    Object.assign(seen, { text: current, revision });
    clash.hide(place);
    form.requestSubmit();
  };
  return clash.show({ of: message.id, place, field, take, keep: stand });
}

function cancel(message, form, seen) {
  const { value } = form.querySelector("textarea");
  close(message, form);
  if (value === seen.text) return;
  const run = () => {
    remember(message, value, seen);
    edit(message);
  };
  const forget = toast(words.editDiscarded, { action: { label: words.resumeEdit, run } });
  // A removed or delivered message can no longer be edited.
  const watcher = new MutationObserver(() => {
    if (message.isConnected) return;
    watcher.disconnect();
    forget();
  });
  watcher.observe(document.getElementById("queue"), { childList: true });
}

function close(message, form) {
  if (!form.isConnected) return;
  keepInTab(nameOf(message.id), null);
  settle(`edit:${message.id}`);
  const hadFocus = form.contains(document.activeElement);
  form.remove();
  message.classList.remove("editing");
  if (hadFocus) message.querySelector("[data-action=edit-queued]").focus();
}

/** Stores an unsaved edit and the text that it started from, so that it survives a reload. */
function remember(message, written, { text, revision }) {
  keepInTab(nameOf(message.id), written === text ? null : { written, seen: { text, revision } });
}

function keys(event, message, form, seen) {
  if (composing(event)) return;
  if (event.key === "Escape") {
    event.stopPropagation();
    cancel(message, form, seen);
  } else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    form.requestSubmit();
  }
}

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
  heldBar.hidden = !held;
  heldBar.querySelector("button").hidden = held < 2;
  const isFolded = folded && waiting >= MANY && !queue.querySelector("form");
  queue.classList.toggle("folded", isFolded);
  fold.hidden = waiting < MANY;
  fold.ariaExpanded = String(!isFolded);
  fold.firstElementChild.textContent = fill(words.queuedMany, { count: waiting });
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
  on("edit-queued", (button) => edit(button.closest(".queued")));
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
