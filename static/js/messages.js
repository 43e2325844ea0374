// The list of messages and the queue: putting a message where it belongs, and what only the browser knows of it.
import { parse, patchElement } from "./patch.js";
import { localise } from "./time.js";

const page = document.getElementById("main");
const list = document.getElementById("messages");
const queue = document.getElementById("queue");
const words = document.getElementById("words").dataset;

/** Puts a message in, or brings the one that is there up to date. Returns its element, null when nothing is drawn. */
export function upsert({ id, sequence, html }) {
  const old = document.getElementById(id);
  const fresh = parse(html).firstElementChild;
  if (!fresh || isBeforeThePage(sequence)) {
    remove(id);
    return null;
  }
  prepare(fresh);
  if (old && old.parentElement === placeOf(sequence) && old.dataset.sequence === fresh.dataset.sequence) update(old, fresh);
  else insert(fresh, sequence, old);
  const element = document.getElementById(id);
  arrange(element.parentElement === list ? element : list.lastElementChild);
  return element;
}

export function remove(id) {
  const element = document.getElementById(id);
  if (!element) return;
  const after = element.nextElementSibling;
  element.remove();
  arrange(after);
}

/** Whether nothing more will become of a message by itself. */
export function isOver(element) {
  return !["streaming", "running", "pending", "waiting", "queued"].includes(element.dataset.status);
}

/** Makes ready what the page load or an older page brought. */
export function adopt(elements) {
  for (const element of elements) prepare(element);
  for (const element of elements) join(element);
  arrange(elements.at(-1)?.nextElementSibling);
}

/** Says whether an older page has yet to bring this sequence number. */
function isBeforeThePage(sequence) {
  const before = Number(document.getElementById("older").dataset.before);
  return Boolean(before) && sequence !== null && sequence < before;
}

const placeOf = (sequence) => (sequence === null ? queue : list);

function update(old, fresh) {
  const body = old.querySelector("[data-body]");
  const unwritten = fresh.querySelector("[data-body]:empty");
  if (body && unwritten && fresh.dataset.status === "streaming") {
    unwritten.replaceWith(body.cloneNode(true)); // its text comes by snap and delta frames alone
  }
  if (old.querySelector("form") && fresh.dataset.status === "queued") {
    old.querySelector(".queued-text").replaceWith(fresh.querySelector(".queued-text")); // its sender is changing it
    return;
  }
  patchElement(old, fresh);
}

function insert(fresh, sequence, old) {
  old?.remove();
  if (sequence === null) return queue.insertBefore(fresh, queue.querySelector(".pending"));
  let before = list.lastElementChild;
  while (before && Number(before.dataset.sequence) > sequence) before = before.previousElementSibling;
  if (before) before.after(fresh);
  else list.prepend(fresh);
}

function prepare(element) {
  localise(element);
  if (element.dataset.userId === page.dataset.viewerId) element.classList.add("mine");
  const who = element.querySelector(":scope > .who");
  if (who && !who.textContent) {
    who.textContent = page.dataset.agent || words.assistant; // before any model is known (UI-06)
    element.setAttribute("aria-label", who.textContent);
  }
}

/** Looks again who begins a run of messages, here and after (UI-05). */
function arrange(element) {
  if (element?.parentElement !== list) return;
  join(element);
  let next = element.nextElementSibling;
  while (next && !next.dataset.speaker) next = next.nextElementSibling;
  if (next) join(next);
}

function join(element) {
  if (!element.dataset.speaker) return;
  let before = element.previousElementSibling;
  while (before && !before.dataset.speaker) before = before.previousElementSibling;
  element.classList.toggle("cont", before?.dataset.speaker === element.dataset.speaker);
}
