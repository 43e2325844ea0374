// The list of messages and the queue: inserts, updates and removes messages, adds lines between days, and folds runs of
// tool calls.
import { cloneTemplate, createElement, createIcon, parseHtml, patchElement } from "../ui/dom.js";
import { updateFaces } from "../ui/faces.js";
import { format, words } from "../ui/i18n.js";
import { dateFormatter, localizeTimes } from "../ui/time.js";
import { markApprovals } from "./approvals.js";
import { ownMentions } from "./session.js";

// The ends of the list while older or newer messages are not loaded.

const CURSORS = { older: "before", newer: "after" };

/** Returns whether there are "older" or "newer" messages that are not loaded. */
export const hasUnloaded = (id) => Boolean(document.getElementById(id).dataset[CURSORS[id]]);

/** Returns whether this sequence number belongs to an older page that is not loaded. */
const isBeforeLoaded = (sequence) =>
  sequence !== null && hasUnloaded("older") && sequence < (edgeMessage("older")?.dataset.sequence ?? Infinity);

/** Returns whether this sequence number belongs to a newer page that is not loaded. */
const isAfterLoaded = (sequence) =>
  sequence !== null && hasUnloaded("newer") && sequence > (edgeMessage("newer")?.dataset.sequence ?? 0);

/**
 * Returns the query of the next page. It is computed when it is needed, because the sequence numbers of rendered messages
 * can change. It contains the id of the outermost message, too, because the server may have moved that message since.
 */
export function nextCursor(id) {
  const message = edgeMessage(id);
  return message ? { [CURSORS[id]]: message.dataset.sequence, at: message.id } : {};
}

function edgeMessage(id) {
  let message = id === "older" ? list.firstElementChild : list.lastElementChild;
  while (message && !message.dataset.sequence)
    message = id === "older" ? message.nextElementSibling : message.previousElementSibling;
  return message;
}

// Unconfirmed messages, which are shown above the composer until the server has them (LIVE-04).

export const findPending = (key) => queue.querySelector(`[data-key="${CSS.escape(key)}"]`);

/** Removes the pending row of a message that has arrived before its ack. */
function removePending(message) {
  const text = message.querySelector(".queued-text, .plain")?.textContent.trim();
  const hasText = (pending) => pending.querySelector(".queued-text").textContent.trim() === text;
  [...queue.querySelectorAll(".pending")].find(hasText)?.remove();
}

const CLOCK_MS = 300_000; // the difference between the browser's clock and the server's

/** Returns whether the page shows a message of the user with this text that is not older than `at`. */
export function isShown({ text, at }) {
  const hasText = (message) => message.querySelector(".queued-text, .plain")?.textContent === text;
  const isNewer = (message) => (timeOfMessage(message) ?? Infinity) >= at - CLOCK_MS; // queued messages have no time
  return [...document.querySelectorAll(".mine")].some((message) => hasText(message) && isNewer(message));
}

/** Shows an unsent message, immediately or `after` a delay in ms. */
export function showPending({ key, text, files = [] }, after = 0) {
  const element = cloneTemplate("pending");
  element.dataset.key = key;
  element.querySelector(".queued-text").textContent = text || files.map(({ name }) => name).join(", ");
  element.hidden = after > 0;
  queue.append(element);
  if (after) setTimeout(() => (element.hidden = false), after);
}

// Lines between the days of a session, in the user's time zone.

const DAY_MS = 86_400_000;
const relativeFormat = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });

/**
 * Returns the time of a message as a Date, or null. Prefers the time in its details: its content can have times, too.
 */
export function timeOfMessage(element) {
  const time = element.querySelector(":scope > .column > .meta time") ?? element.querySelector("time[datetime]");
  return time && new Date(time.dateTime);
}

/** Stores the day of a message, in ms, as data-day. */
function setDay(element) {
  const date = timeOfMessage(element);
  if (date && !Number.isNaN(date.getTime())) element.dataset.day = new Date(date).setHours(0, 0, 0, 0);
}

/** Adds the line of a day before a message if it is the first of its day. Otherwise removes such a line. */
function updateDayLine(element) {
  if (!element?.dataset.day) return;
  const line = dayLineBefore(element);
  let before = (line ?? element).previousElementSibling;
  while (before && !before.dataset.sequence) before = removeLine(before);
  while (before && !before.dataset.day) before = before.previousElementSibling;
  if (before?.dataset.day === element.dataset.day) line?.remove();
  else if (line) fillDayLine(line, element.dataset.day);
  else element.before(fillDayLine(createElement("h2"), element.dataset.day));
}

/** Removes lines without a message below them, and updates the messages at the place that a message has left. */
function updateGap(after) {
  for (const line of list.querySelectorAll(":scope > .day")) {
    if (!line.nextElementSibling?.dataset.sequence) line.remove();
  }
  updateAround(after);
}

/** Updates the labels of days: after midnight, "Today" becomes "Yesterday". With `whole`, shows dates for printing. */
export function updateDayLabels(list, { whole = false } = {}) {
  for (const line of list.querySelectorAll(":scope > .day")) {
    fillDayLine(line, line.dataset.of);
    if (whole)
      line.firstElementChild.textContent = dateFormatter({ dateStyle: "full" }).format(Number(line.dataset.of));
  }
}

const dayLineBefore = (element) =>
  element.previousElementSibling?.matches(".day") ? element.previousElementSibling : null;

function removeLine(line) {
  const before = line.previousElementSibling;
  line.remove();
  return before;
}

function fillDayLine(line, day) {
  line.classList.add("day");
  line.dataset.of = day;
  if (!line.firstElementChild) line.append(createDayButton());
  line.firstElementChild.textContent = dayLabel(Number(day));
  return line;
}

/** Returns a button that opens the box for going to a date. */
function createDayButton() {
  return createElement("button", {
    type: "button",
    title: words.jump,
    data: { action: "jump" },
    ariaHasPopup: "dialog",
  });
}

function dayLabel(day) {
  const today = new Date().setHours(0, 0, 0, 0);
  const ago = Math.round((today - day) / DAY_MS);
  if (ago === 0 || ago === 1) return capitalize(relativeFormat.format(-ago, "day"));
  if (ago > 1 && ago < 7) return capitalize(dateFormatter({ weekday: "long" }).format(day));
  const isThisYear = new Date(day).getFullYear() === new Date().getFullYear();
  const year = isThisYear ? {} : { year: "numeric" };
  return capitalize(dateFormatter({ weekday: "long", day: "numeric", month: "long", ...year }).format(day));
}

const capitalize = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

const page = document.getElementById("main");
const list = document.getElementById("messages");
const queue = document.getElementById("queue");

/** Inserts or updates a message. Returns its element, or null if it is not shown. */
export function upsertMessage(frame) {
  const { id, sequence, html } = frame;
  const old = document.getElementById(id);
  const fresh = parseHtml(html).firstElementChild;
  const isElsewhere = old?.parentElement !== list && (isBeforeLoaded(sequence) || isAfterLoaded(sequence));
  if (!fresh || isElsewhere) {
    removeMessage(id);
    return null;
  }
  prepareMessage(fresh);
  if (old && old.parentElement === listFor(sequence)) {
    updateMessage(old, fresh);
    if (!isInOrder(old)) {
      const after = old.nextElementSibling;
      moveMessage(old, sequence);
      updateGap(after);
    }
  } else insertMessage(fresh, sequence, old);
  if (!old && fresh.matches(".mine")) removePending(fresh);
  const element = document.getElementById(id);
  updateAround(element.parentElement === list ? element : list.lastElementChild);
  return element;
}

export function removeMessage(id) {
  const element = document.getElementById(id);
  if (!element) return;
  const after = element.nextElementSibling;
  element.dispatchEvent(new Event("gone")); // handlers can save unsaved edits and move the focus
  const next =
    list.contains(element) &&
    element.contains(document.activeElement) &&
    (nextMessage(element) ?? nextMessage(element, "previous"));
  element.remove();
  updateGap(after);
  if (!after) foldRun(list.lastElementChild); // the last message is never folded
  if (next !== false) (next ?? document.getElementById("log")).focus({ preventScroll: true });
}

/** Returns the visible message after another one, or before it ("previous"). */
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

/** Returns whether a message is finished. */
export function isFinished(element) {
  return !["streaming", "running", "pending", "waiting", "queued"].includes(element.dataset.status);
}

/** Prepares messages that were rendered with the page, or with a page of older or newer messages. */
export function prepareRendered(elements) {
  for (const element of elements) removeDuplicates(element);
  for (const element of elements) prepareMessage(element);
  for (const element of elements) updateGrouping(element);
  // Folds each run of calls once, at its first call.
  for (const element of elements)
    if (element === elements[0] || !element.previousElementSibling?.matches(".tool_group")) foldRun(element);
  updateAround(elements.at(-1)?.nextElementSibling);
}

/** Removes other elements with the id of a message: a frame may have inserted it while the page was requested. */
function removeDuplicates(element) {
  if (!element.id) return;
  for (const other of document.querySelectorAll(`[id="${element.id}"]`)) if (other !== element) other.remove();
}

const listFor = (sequence) => (sequence === null ? queue : list);

function updateMessage(old, fresh) {
  const body = old.querySelector("[data-body]");
  const emptyBody = fresh.querySelector("[data-body]:empty");
  if (body && emptyBody && fresh.dataset.status === "streaming") {
    emptyBody.replaceWith(body.cloneNode(true)); // the text of a streaming message comes only by snap and delta frames
  }
  if (old.matches(".queued.editing")) fresh.classList.add("editing"); // the sender is editing it
  patchElement(old, fresh);
}

function insertMessage(fresh, sequence, old) {
  old?.dispatchEvent(new Event("gone")); // a queued message has been delivered
  old?.remove();
  if (sequence === null) return queue.insertBefore(fresh, queue.querySelector(".pending"));
  list.insertBefore(fresh, elementAfter(sequence));
}

/** Returns the element before which a message with this sequence number is inserted, or null for the end. */
function elementAfter(sequence) {
  let before = list.lastElementChild;
  while (before && !(Number(before.dataset.sequence) <= sequence)) before = before.previousElementSibling;
  return before ? before.nextElementSibling : list.firstElementChild;
}

/** Returns whether a message of the list is in the right place, because its sequence number may have changed. */
function isInOrder(message) {
  const numbers = ["previous", "next"].map((way) => {
    let other = message[`${way}ElementSibling`];
    while (other && !other.dataset.sequence) other = other[`${way}ElementSibling`];
    return other && Number(other.dataset.sequence);
  });
  const [before, behind] = [numbers[0] ?? -Infinity, numbers[1] ?? Infinity];
  return message.parentElement !== list || (before <= message.dataset.sequence && message.dataset.sequence <= behind);
}

/** Moves a message of the list to its place. Edits in it stay open, and the focus is kept. */
function moveMessage(message, sequence) {
  const focused = message.contains(document.activeElement) ? document.activeElement : null;
  delete message.dataset.sequence; // so that elementAfter does not find the message itself
  const next = elementAfter(sequence);
  message.dataset.sequence = sequence;
  list.insertBefore(message, next === message ? message.nextElementSibling : next);
  focused?.focus({ preventScroll: true });
}

function prepareMessage(element) {
  localizeTimes(element);
  setDay(element);
  updateFaces(element);
  markApprovals(element);
  if (element.dataset.userId === page.dataset.viewerId) element.classList.add("mine");
  const own = ownMentions(element);
  if (own.length) element.classList.add("calls-me");
  for (const mention of own) mention.classList.add("is-me");
  const author = element.querySelector(":scope > .who");
  if (author && !author.textContent) {
    author.textContent = page.dataset.agent || words.assistant; // shown until the model is known (UI-06)
    element.setAttribute("aria-label", author.textContent);
  }
}

/** Updates the grouping (UI-05), the line of the day and the folding of a message and its neighbors. */
function updateAround(element) {
  if (element?.parentElement !== list) return;
  updateGrouping(element);
  let next = element.nextElementSibling;
  while (next && !next.dataset.speaker) next = next.nextElementSibling;
  if (next) updateGrouping(next);
  for (const each of [element.previousElementSibling, element, next]) foldRun(each);
}

function updateGrouping(element) {
  markContinuation(element);
  updateDayLine(element);
}

function markContinuation(element) {
  if (!element.dataset.speaker) return;
  let before = element.previousElementSibling;
  while (before && !before.dataset.speaker) before = before.previousElementSibling;
  element.classList.toggle("cont", before?.dataset.speaker === element.dataset.speaker);
}

// Runs of tool calls: more than three finished calls in a row are folded into one line, which unfolds them.

const MAX_UNFOLDED = 3;
const MAX_NAMES = 2;
const unfoldedRuns = new Set(); // the first calls of the runs that the user has unfolded

/** Folds or unfolds the run of calls that contains a message. */
function foldRun(message) {
  if (!message?.matches("article.tool_group")) return;
  let first = message;
  while (isToolCall(first.previousElementSibling)) first = first.previousElementSibling;
  const calls = [];
  for (let call = first; isToolCall(call); call = call.nextElementSibling) calls.push(call);
  const folded = calls.filter(isFoldable);
  const head = folded.length > MAX_UNFOLDED ? folded[0] : null;
  const isOpen = folded.some(({ id }) => unfoldedRuns.has(id));
  for (const call of calls) {
    if (call !== head) call.querySelector(":scope > .tool-run")?.remove();
    call.classList.toggle("run", call === head && !isOpen);
    call.classList.toggle("folded", head !== null && call !== head && !isOpen && folded.includes(call));
  }
  if (head) showRunLabel(head, folded, isOpen);
}

/** Unfolds a folded message to which the user goes. */
export function unfoldRun(message) {
  if (!message?.matches(".folded, .run")) return;
  unfoldedRuns.add(message.id);
  foldRun(message);
}

const isToolCall = (element) => element?.matches("article.tool_group") ?? false;

/** Returns whether a call can be folded: it has succeeded, shows nothing else, and is not the last message. */
function isFoldable(call) {
  const [card, next] = call.querySelector(":scope > .column").children;
  return (
    call !== list.lastElementChild &&
    card.matches(".tool[data-state=done]:not([open])") &&
    !next?.matches(".terminal, .decision, .tool-files")
  );
}

function showRunLabel(head, calls, isOpen) {
  const button = head.querySelector(":scope > .tool-run") ?? head.appendChild(createRunButton());
  button.setAttribute("aria-expanded", String(isOpen));
  button.querySelector("span").textContent = runLabel(calls);
}

function createRunButton() {
  const shown = [createIcon("chevron-right"), createElement("span"), createIcon("check")];
  const button = createElement("button", { type: "button", className: "tool-run", data: { own: "" } }, ...shown);
  button.addEventListener("click", () => toggleRun(button));
  return button;
}

function toggleRun(button) {
  const head = button.parentElement;
  const isOpen = button.getAttribute("aria-expanded") === "true";
  for (let call = head; isToolCall(call); call = call.nextElementSibling) {
    if (isOpen) unfoldedRuns.delete(call.id);
  }
  if (!isOpen) unfoldedRuns.add(head.id);
  foldRun(head);
}

/** Returns the label of a run: `read_file ×38, grep ×2`, or the number of calls if there are more names. */
function runLabel(calls) {
  const counts = new Map();
  for (const call of calls) {
    const name = call.querySelector(".tool-name").textContent;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (counts.size > MAX_NAMES) return format(words.toolCalls, { count: calls.length });
  return [...counts].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
}
