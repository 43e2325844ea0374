// The list of messages and the queue: putting a message where it belongs, and what only the browser knows of it.
import { mark, note, unmark } from "./days.js";
import { isAfter, isBefore } from "./edges.js";
import { dress } from "./faces.js";
import { parse, patchElement } from "./patch.js";
import { arrived } from "./pending.js";
import { localise } from "./time.js";
import { fold } from "./tool_runs.js";
import { words } from "./words.js";

const page = document.getElementById("main");
const list = document.getElementById("messages");
const queue = document.getElementById("queue");

/** Puts a message in, or brings the one that is there up to date. Returns its element, null when nothing is drawn. */
export function upsert(frame) {
  const { id, sequence, html } = frame;
  const old = document.getElementById(id);
  const fresh = parse(html).firstElementChild;
  const isElsewhere = old?.parentElement !== list && (isBefore(sequence) || isAfter(sequence));
  if (!fresh || isElsewhere) {
    remove(id);
    return null;
  }
  prepare(fresh);
  if (old && old.parentElement === placeOf(sequence) && old.dataset.sequence === fresh.dataset.sequence) update(old, fresh);
  else insert(fresh, sequence, old);
  if (!old && fresh.matches(".mine")) arrived(fresh);
  const element = document.getElementById(id);
  arrange(element.parentElement === list ? element : list.lastElementChild);
  return element;
}

export function remove(id) {
  const element = document.getElementById(id);
  if (!element) return;
  const after = element.nextElementSibling;
  const next = list.contains(element) && element.contains(document.activeElement) && (nextMessage(element) ?? nextMessage(element, "previous"));
  element.dispatchEvent(new CustomEvent("gone"));
  element.remove();
  unmark(list);
  arrange(after);
  if (next !== false) (next ?? document.getElementById("log")).focus({ preventScroll: true });
}

/** The message after another one, or before it. */
export function nextMessage(element, way = "next") {
  let next = element[`${way}ElementSibling`];
  while (next && !next.matches("article.message:not(.folded)")) next = next[`${way}ElementSibling`];
  return next;
}

/** The newest message here that matches a selector; null where there is none. */
export function lastMessage(kind = "") {
  let last = list.lastElementChild;
  while (last && !last.matches(`article.message${kind}`)) last = last.previousElementSibling;
  return last;
}

/** Whether nothing more will become of a message by itself. */
export function isOver(element) {
  return !["streaming", "running", "pending", "waiting", "queued"].includes(element.dataset.status);
}

/** Makes ready what the page load, or an older or newer page, brought. */
export function adopt(elements) {
  for (const element of elements) replaceTwins(element);
  for (const element of elements) prepare(element);
  for (const element of elements) arrangeOne(element);
  // Once for each run: at its first call here.
  for (const element of elements) if (element === elements[0] || !element.previousElementSibling?.matches(".tool_group")) fold(element);
  arrange(elements.at(-1)?.nextElementSibling);
}

/** A message that has moved across the end of the list meanwhile is brought a second time. */
function replaceTwins(element) {
  if (!element.id) return;
  for (const twin of document.querySelectorAll(`[id="${element.id}"]`)) if (twin !== element) twin.remove();
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
    old.dataset.revision = fresh.dataset.revision;
    return;
  }
  patchElement(old, fresh);
}

function insert(fresh, sequence, old) {
  old?.remove();
  if (sequence === null) return queue.insertBefore(fresh, queue.querySelector(".pending"));
  let before = list.lastElementChild;
  while (before && !(Number(before.dataset.sequence) <= sequence)) before = before.previousElementSibling;
  if (before) before.after(fresh);
  else list.prepend(fresh);
}

function prepare(element) {
  localise(element);
  note(element);
  dress(element);
  if (element.dataset.userId === page.dataset.viewerId) element.classList.add("mine");
  if (callsMe(element)) element.classList.add("calls-me");
  const who = element.querySelector(":scope > .who");
  if (who && !who.textContent) {
    who.textContent = page.dataset.agent || words.assistant; // before any model is known (UI-06)
    element.setAttribute("aria-label", who.textContent);
  }
}

/** Looks again who begins a run of messages (UI-05), and which one a day, here and after. */
function arrange(element) {
  if (element?.parentElement !== list) return;
  arrangeOne(element);
  let next = element.nextElementSibling;
  while (next && !next.dataset.speaker) next = next.nextElementSibling;
  if (next) arrangeOne(next);
  for (const each of [element.previousElementSibling, element, next]) fold(each);
}

function arrangeOne(element) {
  join(element);
  mark(element);
}

function join(element) {
  if (!element.dataset.speaker) return;
  let before = element.previousElementSibling;
  while (before && !before.dataset.speaker) before = before.previousElementSibling;
  element.classList.toggle("cont", before?.dataset.speaker === element.dataset.speaker);
}

/** Whether a message by somebody else calls this reader by name. */
function callsMe(element) {
  const me = page.dataset.viewerName;
  if (!me || element.classList.contains("mine")) return false;
  const said = element.querySelector(".plain")?.textContent ?? "";
  // Somebody whose name looks like another's is called by both forms of it: "Ana (ana)" and "Ana".
  return isCalled(said, me, /^[\p{L}\p{N}_]/u) || isCalled(said, me.replace(/ \([^()]*\)$/, ""), /^([\p{L}\p{N}_]| \()/u);
}

function isCalled(said, name, goesOn) {
  const at = said.indexOf(`@${name}`);
  return at >= 0 && !goesOn.test(said.slice(at + name.length + 1));
}
