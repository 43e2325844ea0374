// Changing one's own queued message in its place; what one has made of it elsewhere is not written over unseen.
import * as clash from "./clash.js";
import { composing } from "./field.js";
import { fits } from "./limit.js";
import { notice, settle } from "./notice.js";
import { live } from "./page.js";
import { textOf } from "./queue.js";
import { keepInTab, keptInTab } from "./store.js";
import { toast } from "./toast.js";
import { words } from "./words.js";

const nameOf = (id) => `parley:queued:${id}`;

/** Opens a field with the message's text in its place, or with what somebody has made of it before. */
export function edit(message) {
  if (message.querySelector("form")) return;
  const form = document.getElementById("edit-queued").content.firstElementChild.cloneNode(true);
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

/** Looks whether the message has become another, now and as long as it is being changed. */
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
    const { revision } = await live.request({ type: "edit_queued", id: message.id, text: value, revision: Number(seen.revision) });
    Object.assign(seen, { text: value, revision, saving: null });
  } catch (refusal) {
    return refusal.code === "stale" ? choose(message, form, seen) : notice(refusal.message, { about: `edit:${message.id}` });
  }
  // What somebody has gone on writing must not be lost.
  if (!form.isConnected) return;
  const { value: present } = form.querySelector("textarea");
  if (present === value) close(message, form);
  else remember(message, present, seen);
}

/** The same person has changed it elsewhere: which one is it to be? */
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
  // Removed or delivered, it cannot be edited any more.
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

/** What is being made of a message outlasts the page in its tab, with what it was made of. */
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
