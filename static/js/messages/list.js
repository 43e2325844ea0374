// The list of messages and the queue: puts messages in their place, keeps what only the browser knows of them, and folds
// runs of tool calls.
import { copyOf, icon, make, parse, patchElement } from "../ui/dom.js";
import { dress } from "../ui/faces.js";
import { fill, words } from "../ui/i18n.js";
import { formatter, localise } from "../ui/time.js";
import { ownMentions } from "./session.js";

// The ends of the list while older or newer messages are not loaded.

const CAN_BE = { older: "before", newer: "after" };

/** Whether older (or "newer") messages are not loaded. */
export const lacks = (id) => Boolean(document.getElementById(id).dataset[CAN_BE[id]]);

/** Whether this sequence number belongs to an older page that is not loaded. */
const isBefore = (sequence) => sequence !== null && lacks("older") && sequence < (placeAt("older") ?? Infinity);

/** Whether this sequence number belongs to a newer page that is not loaded. */
const isAfter = (sequence) => sequence !== null && lacks("newer") && sequence > (placeAt("newer") ?? 0);

/** Returns the cursor for the next page. Computed now: sequence numbers may have changed since the end was rendered. */
export function beyond(id) {
  const place = placeAt(id);
  return place === undefined ? {} : { [CAN_BE[id]]: place };
}

function placeAt(id) {
  let message = id === "older" ? list.firstElementChild : list.lastElementChild;
  while (message && !message.dataset.sequence)
    message = id === "older" ? message.nextElementSibling : message.previousElementSibling;
  return message ? Number(message.dataset.sequence) : undefined;
}

// Unconfirmed messages, shown above the composer until the server has them (LIVE-04).

export const pendingOf = (key) => queue.querySelector(`[data-key="${CSS.escape(key)}"]`);

/** Hides the pending row of a message that has arrived before its ack. */
export function arrived(message) {
  const said = message.querySelector(".queued-text, .plain")?.textContent.trim();
  const isIt = (pending) => pending.querySelector(".queued-text").textContent.trim() === said;
  [...queue.querySelectorAll(".pending")].find(isIt)?.remove();
}

/** Shows an entry of the outbox, at once or after a delay. */
export function showPending({ key, text, files = [] }, after = 0) {
  const element = copyOf("pending");
  element.dataset.key = key;
  element.querySelector(".queued-text").textContent = text || files.map(({ name }) => name).join(", ");
  element.hidden = after > 0;
  queue.append(element);
  if (after) setTimeout(() => (element.hidden = false), after);
}

// Lines between the days of a session, in the user's time zone.

const A_DAY = 86_400_000;
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });

/** Returns the time of a message: the one of its details, which its content may precede with others. */
export function momentOf(element) {
  const time = element.querySelector(":scope > .column > .meta time") ?? element.querySelector("time[datetime]");
  return time && new Date(time.dateTime);
}

/** Sets the day of a message. */
export function note(element) {
  const date = momentOf(element);
  if (date && !Number.isNaN(date.getTime())) element.dataset.day = new Date(date).setHours(0, 0, 0, 0);
}

/** Adds a day's line before its first message, and removes it before others. */
export function mark(element) {
  if (!element?.dataset.day) return;
  const line = lineBefore(element);
  let before = (line ?? element).previousElementSibling;
  while (before && !before.dataset.sequence) before = dropped(before);
  while (before && !before.dataset.day) before = before.previousElementSibling;
  if (before?.dataset.day === element.dataset.day) line?.remove();
  else if (line) say(line, element.dataset.day);
  else element.before(say(make("h2"), element.dataset.day));
}

/** Removes a line without a message below it. */
function unmark(list) {
  for (const line of list.querySelectorAll(":scope > .day")) {
    if (!line.nextElementSibling?.dataset.sequence) line.remove();
  }
}

/** Updates the labels: after midnight "Today" becomes "Yesterday". `whole` dates are for printing. */
export function renew(list, { whole = false } = {}) {
  for (const line of list.querySelectorAll(":scope > .day")) {
    say(line, line.dataset.of);
    if (whole) line.firstElementChild.textContent = formatter({ dateStyle: "full" }).format(Number(line.dataset.of));
  }
}

const lineBefore = (element) =>
  element.previousElementSibling?.className === "day" ? element.previousElementSibling : null;

function dropped(line) {
  const before = line.previousElementSibling;
  line.remove();
  return before;
}

function say(line, day) {
  line.className = "day";
  line.dataset.of = day;
  if (!line.firstElementChild) line.append(button());
  line.firstElementChild.textContent = named(Number(day));
  return line;
}

/** Opens the box for going to a date. */
function button() {
  return make("button", { type: "button", title: words.jump, data: { action: "jump" }, ariaHasPopup: "dialog" });
}

function named(day) {
  const today = new Date().setHours(0, 0, 0, 0);
  const ago = Math.round((today - day) / A_DAY);
  if (ago === 0 || ago === 1) return capital(relative.format(-ago, "day"));
  if (ago > 1 && ago < 7) return capital(formatter({ weekday: "long" }).format(day));
  const isThisYear = new Date(day).getFullYear() === new Date().getFullYear();
  const year = isThisYear ? {} : { year: "numeric" };
  return capital(formatter({ weekday: "long", day: "numeric", month: "long", ...year }).format(day));
}

const capital = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

const page = document.getElementById("main");
const list = document.getElementById("messages");
const queue = document.getElementById("queue");

/** Inserts or updates a message. Returns its element, or null if it is not shown. */
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
  if (old && old.parentElement === placeOf(sequence)) {
    update(old, fresh);
    if (!isInOrder(old)) move(old, sequence);
  } else insert(fresh, sequence, old);
  if (!old && fresh.matches(".mine")) arrived(fresh);
  const element = document.getElementById(id);
  arrange(element.parentElement === list ? element : list.lastElementChild);
  return element;
}

export function remove(id) {
  const element = document.getElementById(id);
  if (!element) return;
  const after = element.nextElementSibling;
  element.dispatchEvent(new CustomEvent("gone")); // may move the focus
  const next =
    list.contains(element) &&
    element.contains(document.activeElement) &&
    (nextMessage(element) ?? nextMessage(element, "previous"));
  element.remove();
  unmark(list);
  arrange(after);
  if (!after) fold(list.lastElementChild); // the last call is not folded
  if (next !== false) (next ?? document.getElementById("log")).focus({ preventScroll: true });
}

/** Returns the message after another one, or before it. */
export function nextMessage(element, way = "next") {
  let next = element[`${way}ElementSibling`];
  while (next && !(next.matches("article.message:not(.folded)") && next.checkVisibility()))
    next = next[`${way}ElementSibling`];
  return next;
}

/** Returns the newest loaded message that matches a selector, or null. */
export function lastMessage(kind = "") {
  let last = list.lastElementChild;
  while (last && !last.matches(`article.message${kind}`)) last = last.previousElementSibling;
  return last;
}

/** Whether a message is finished. */
export function isOver(element) {
  return !["streaming", "running", "pending", "waiting", "queued"].includes(element.dataset.status);
}

/** Prepares messages that came with the page or with an older or newer one. */
export function adopt(elements) {
  for (const element of elements) replaceTwins(element);
  for (const element of elements) prepare(element);
  for (const element of elements) arrangeOne(element);
  // Once per run, at its first call.
  for (const element of elements)
    if (element === elements[0] || !element.previousElementSibling?.matches(".tool_group")) fold(element);
  arrange(elements.at(-1)?.nextElementSibling);
}

/** Removes duplicates: a message may have moved across the end of the list since. */
function replaceTwins(element) {
  if (!element.id) return;
  for (const twin of document.querySelectorAll(`[id="${element.id}"]`)) if (twin !== element) twin.remove();
}

const placeOf = (sequence) => (sequence === null ? queue : list);

function update(old, fresh) {
  const body = old.querySelector("[data-body]");
  const unwritten = fresh.querySelector("[data-body]:empty");
  if (body && unwritten && fresh.dataset.status === "streaming") {
    unwritten.replaceWith(body.cloneNode(true)); // its text comes only by snap and delta frames
  }
  if (old.matches(".queued.editing")) fresh.classList.add("editing"); // by its sender
  patchElement(old, fresh);
}

function insert(fresh, sequence, old) {
  old?.remove();
  if (sequence === null) return queue.insertBefore(fresh, queue.querySelector(".pending"));
  list.insertBefore(fresh, nextOf(sequence));
}

/** Returns the element before which a message with this sequence number is inserted; null for the end. */
function nextOf(sequence) {
  let before = list.lastElementChild;
  while (before && !(Number(before.dataset.sequence) <= sequence)) before = before.previousElementSibling;
  return before ? before.nextElementSibling : list.firstElementChild;
}

/** Whether a message of the list, whose sequence number may have changed, is between the right ones. */
function isInOrder(message) {
  const numbers = ["previous", "next"].map((way) => {
    let other = message[`${way}ElementSibling`];
    while (other && !other.dataset.sequence) other = other[`${way}ElementSibling`];
    return other && Number(other.dataset.sequence);
  });
  const [before, behind] = [numbers[0] ?? -Infinity, numbers[1] ?? Infinity];
  return message.parentElement !== list || (before <= message.dataset.sequence && message.dataset.sequence <= behind);
}

/** Moves a message of the list to its place. An edit in it stays open, and the focus where it was. */
function move(message, sequence) {
  const focused = message.contains(document.activeElement) ? document.activeElement : null;
  delete message.dataset.sequence; // not its own neighbour
  const next = nextOf(sequence);
  message.dataset.sequence = sequence;
  list.insertBefore(message, next === message ? message.nextElementSibling : next);
  focused?.focus({ preventScroll: true });
}

function prepare(element) {
  localise(element);
  note(element);
  dress(element);
  if (element.dataset.userId === page.dataset.viewerId) element.classList.add("mine");
  const own = ownMentions(element);
  if (own.length) element.classList.add("calls-me");
  for (const mention of own) mention.classList.add("is-me");
  const who = element.querySelector(":scope > .who");
  if (who && !who.textContent) {
    who.textContent = page.dataset.agent || words.assistant; // before the model is known (UI-06)
    element.setAttribute("aria-label", who.textContent);
  }
}

/** Updates the starts of runs (UI-05) and days at a message and after it. */
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

// Runs of tool calls: more than three finished calls in a row fold into one line, which unfolds them.

const MOST_SHOWN = 3;
const MOST_NAMES = 2;
const opened = new Set(); // the first calls of the runs that the user has unfolded

/** Folds or unfolds the run that a message is in. */
function fold(message) {
  if (!message?.matches("article.tool_group")) return;
  let first = message;
  while (isCall(first.previousElementSibling)) first = first.previousElementSibling;
  const calls = [];
  for (let call = first; isCall(call); call = call.nextElementSibling) calls.push(call);
  const folded = calls.filter(isFoldable);
  const head = folded.length > MOST_SHOWN ? folded[0] : null;
  const isOpen = folded.some(({ id }) => opened.has(id));
  for (const call of calls) {
    if (call !== head) call.querySelector(":scope > .tool-run")?.remove();
    call.classList.toggle("run", call === head && !isOpen);
    call.classList.toggle("folded", head !== null && call !== head && !isOpen && folded.includes(call));
  }
  if (head) sayRun(head, folded, isOpen);
}

/** Unfolds a message, for a user who goes to it. */
export function unfold(message) {
  if (!message?.matches(".folded, .run")) return;
  opened.add(message.id);
  fold(message);
}

const isCall = (element) => element?.matches("article.tool_group") ?? false;

/** Whether a call can be folded: not if it failed, has terminal output or asked people, and not as the last message. */
function isFoldable(call) {
  const [card, next] = call.querySelector(":scope > .column").children;
  return (
    call !== list.lastElementChild &&
    card.matches(".tool[data-state=done]:not([open])") &&
    !next?.matches(".terminal, .decision, .tool-files")
  );
}

function sayRun(head, calls, isOpen) {
  const button = head.querySelector(":scope > .tool-run") ?? head.appendChild(drawnRun());
  button.setAttribute("aria-expanded", String(isOpen));
  button.querySelector("span").textContent = runNamed(calls);
}

function drawnRun() {
  const shown = [icon("chevron-right"), make("span"), icon("check")];
  const button = make("button", { type: "button", className: "tool-run", data: { own: "" } }, ...shown);
  button.addEventListener("click", () => toggle(button));
  return button;
}

function toggle(button) {
  const head = button.parentElement;
  const isOpen = button.getAttribute("aria-expanded") === "true";
  for (let call = head; isCall(call); call = call.nextElementSibling) {
    if (isOpen) opened.delete(call.id);
  }
  if (!isOpen) opened.add(head.id);
  fold(head);
}

/** Returns `read_file ×38, grep ×2`, or only the number if there are more names. */
function runNamed(calls) {
  const counts = new Map();
  for (const call of calls) {
    const name = call.querySelector(".tool-name").textContent;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (counts.size > MOST_NAMES) return fill(words.toolCalls, { count: calls.length });
  return [...counts].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
}
