// The scroll position: at the end it follows new messages, elsewhere it stays. Also goes to a message or a day.
import { readTab, writeTab } from "../net/storage.js";
import { onAction, PHONE } from "../ui/commands.js";
import { distanceToEnd, NEAR_END_PX } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { showNotice } from "../ui/notice.js";
import { closePopover, openPopover, watchUser } from "../ui/popover.js";
import { hasUnloaded, timeOfMessage, unfoldRun } from "./list.js";
import * as loadedPart from "./loaded_part.js";
import { loadAround, loadNewest, loadOldest, loadSince } from "./loaded_part.js";
import { canEdit } from "./session.js";
import { unfoldSummary } from "./summary.js";

const log = document.getElementById("log");
const list = document.getElementById("messages");

const COUNTED = "article.message:is(.user, .assistant, .error)"; // tool calls don't count as messages
const button = document.querySelector("[data-action=latest]");
const label = button.querySelector("span");
const PLACE_NAME = `parley:place:${document.getElementById("main").dataset.session}`;
let isFollowing = true;
let destination = null; // the target position, until it is reached or the user scrolls
let lastTop = 0;
let lastHeight = 0; // the visible height
let seenSequence = 0; // the last sequence number when the user left the end

const isNewestLoaded = () => !hasUnloaded("newer");

/** Goes to the end and follows new messages again. */
export async function scrollToEnd() {
  // The address no longer contains a message, so that a link to the same message works again.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (!isNewestLoaded() && (await loadNewest()) === null) return;
  followEnd();
}

/** Moves the focus to a message, unless the user has acted since the page started to go there. */
const focusUnless = (hasActed, message) => hasActed() || message?.focus({ preventScroll: true });

/** Goes to the first message of the session. */
export async function scrollToStart() {
  const hasActed = watchUser();
  stopFollowing();
  const top = () => (log.scrollTop = 0);
  if (hasUnloaded("older") && (await loadOldest(top)) === null) return;
  await repeatWhileResizing(top);
  focusUnless(hasActed, list.querySelector("article.message"));
}

/** Goes to the first message at or after a time, or to the last one. */
async function scrollToTime(moment) {
  const isSince = (element) => timeOfMessage(element) >= moment;
  const first = () => [...list.querySelectorAll("article.message")].find(isSince);
  const hasActed = watchUser();
  stopFollowing();
  let found = null;
  if ((await loadSince(moment, () => (found = first()))) === null) return;
  if (!found) return scrollToEnd();
  await goToPlace({ id: found.id, top: 0 }, (message) => message.scrollIntoView({ block: "start" }));
  focusUnless(hasActed, document.getElementById(found.id));
}

/**
 * Calls `change`, which changes the list, and keeps the scroll position: the end, or the line at the upper edge. Pass
 * `moves: false` if the change cannot move that line. An open question that has the pointer or the focus does not
 * move either, so that a press hits the intended button.
 */
export function keepScrollPosition(change, { moves = true } = {}) {
  const question = questionInUse();
  const edge = isFollowing || !moves ? [] : visiblePieces();
  const lines = (question ? [question, ...edge] : edge).map((each) => ({
    each,
    top: topOf(each),
    text: each.textContent,
  }));
  // The browser's own scroll anchoring fails if margins of messages change, for example below a removed message.
  const holds = lines.length > 0 && (heldLine !== null || !log.classList.contains("holding"));
  if (holds) log.classList.add("holding");
  change();
  const visible = lines.filter(({ each }) => each.checkVisibility() && (each !== question || isOpenQuestion(each)));
  // An element whose text has changed may show another block now, for example at the end of a stream.
  const isSame = ({ each, text }) => each === question || each.textContent === text;
  const line = visible.find(isSame) ?? visible.find(({ each, text }) => each.textContent.startsWith(text));
  if (line) lastTop = log.scrollTop += topOf(line.each) - line.top;
  if (line && line.each === question && distanceToEnd(log) > NEAR_END_PX) stopFollowing();
  if (holds) line ? holdLine(line.each) : releaseLine();
  if (isFollowing) followEnd();
  else updateButtonLabel();
}

let restored = null; // {each, top}: the message whose position is being restored after a reload
let heldLine = null; // {each, top, at}: the element kept in place for some frames, its top, and the scroll position

/**
 * Keeps an element for some frames at the position `top`, in px below the list's edge, while messages that have come
 * into view get their real heights.
 */
async function holdLine(each, top = topOf(each), frames = SETTLING_FRAMES) {
  const line = (heldLine = { each, top, at: log.scrollTop });
  for (let frame = 0; frame < frames && heldLine === line; frame++) await new Promise(requestAnimationFrame);
  if (heldLine === line) releaseLine();
}

function releaseLine() {
  heldLine = null;
  log.classList.remove("holding");
}

function handleResize() {
  if (isFollowing) return followEnd();
  // After a removal, the whole list can be in view. No scroll event reports this if its beginning was in view before.
  if (!destination && distanceToEnd(log) <= 0) handleScroll();
  if (!heldLine?.each.isConnected) return;
  if (log.scrollTop !== heldLine.at) return releaseLine(); // the user scrolls
  log.scrollTop += topOf(heldLine.each) - heldLine.top;
  lastTop = heldLine.at = log.scrollTop;
}

const PIECES = "[data-body] > *, .plain, .tool, .question";

/** Returns the first visible piece of each visible message. Names are not pieces, because they can disappear. */
function visiblePieces() {
  const found = [];
  for (let next = firstVisible(); next && topOf(next) < log.clientHeight; next = next.nextElementSibling) {
    const pieces = next.dataset.sequence ? [...next.querySelectorAll(PIECES)] : [];
    found.push(pieces.find((each) => topOf(each) + each.offsetHeight > 0) ?? next);
  }
  return found;
}

let pointedAt = null;
const isOpenQuestion = (question) => question?.dataset.open === "yes";
const questionInUse = () =>
  [pointedAt, document.activeElement].map((element) => element?.closest(".question")).find(isOpenQuestion);

/** Stops following the end. */
export function stopFollowing() {
  if (isFollowing) seenSequence = lastSequence();
  isFollowing = false;
}

function connectScroll() {
  followEnd();
  log.dataset.ready = "";
  log.addEventListener("scroll", handleScroll, { passive: true });
  button.addEventListener("click", async () => {
    const message = questionBelow()?.closest("article");
    if (message) return goToMessage(message.id);
    await scrollToEnd();
    log.focus({ preventScroll: true });
  });
  log.addEventListener("click", handleOpened);
  list.addEventListener("pointerover", ({ target }) => (pointedAt = target));
  list.addEventListener("pointerleave", () => (pointedAt = null));
  // Messages get their real height when they come into view, so the end also moves without new messages.
  const observer = new ResizeObserver(handleResize);
  for (const element of [log, ...log.children]) observer.observe(element);
  keepPositionWhileLoading();
  addEventListener("pagehide", storePosition);
}

/** Restores the position from before a reload. Resolves to whether there is one. */
async function restorePosition() {
  const { type } = performance.getEntriesByType("navigation")[0] ?? {};
  const place = ["reload", "back_forward"].includes(type) ? readTab(PLACE_NAME) : null;
  if (!place) return false;
  const isThere = await goToPlace(place, (message) => {
    restored = { each: message, top: place.top };
    log.scrollTop += topOf(message) - place.top;
  });
  restored = null;
  if (isThere) {
    log.classList.add("holding");
    holdLine(document.getElementById(place.id), place.top, LOADING_FRAMES);
  }
  return isThere;
}

/**
 * Goes to the message `place.id`, loading the messages around it if necessary. `scroll(message)` scrolls to it. Until
 * it is reached, `place` is the position to restore after a reload: the message, `place.top` px below the list's edge.
 * Resolves to false if the message does not exist, and to null if the user has gone elsewhere in the meantime.
 */
async function goToPlace(place, scroll) {
  const found = () => document.getElementById(place.id);
  const step = () => {
    unfoldRun(found());
    unfoldSummary(found());
    if (found()) scroll(found());
  };
  stopFollowing();
  destination = place;
  // Also false if the request was aborted, because the user is leaving the page.
  const isThere = found() !== null || (await loadAround(place.id, step));
  if (!isThere) return isThere;
  await repeatWhileResizing(step);
  if (destination !== place) return found() !== null || null;
  destination = null;
  return found() !== null;
}

const SETTLING_FRAMES = 4; // frames until content that has come into view has its real height
const LOADING_FRAMES = 60; // for a restored position, because more content gets its real height after a reload

/** Repeats a step while new content in view gets its real height. */
async function repeatWhileResizing(step) {
  for (let frame = 0; frame < SETTLING_FRAMES; frame++) {
    step();
    await new Promise(requestAnimationFrame);
  }
  handleScroll();
}

/** Returns the topmost visible message. */
export function firstVisible() {
  const edge = log.getBoundingClientRect().top;
  return [...list.children].find(
    (message) => message.dataset.sequence && message.getBoundingClientRect().bottom > edge,
  );
}

function followEnd() {
  isFollowing = true;
  destination = null;
  showEndButton(false);
  log.scrollTop = log.scrollHeight;
  lastTop = log.scrollTop;
  lastHeight = log.clientHeight;
}

/**
 * Shows or hides the button. Sets the attribute only if it changes, because Chromium then computes all styles again.
 */
function showEndButton(isOffered) {
  if (button.hidden === isOffered) button.hidden = !isOffered;
}

function handleScroll() {
  // If the scroll position is smaller, the user has scrolled up, because new content below never changes it. The
  // position also gets smaller while the window grows, which does not count.
  if (distanceToEnd(log) < NEAR_END_PX && isNewestLoaded()) isFollowing = true;
  else if (log.scrollTop < lastTop - 1 && log.clientHeight === lastHeight) {
    destination = null;
    stopFollowing();
  }
  showEndButton(
    !isFollowing &&
      !(isNewestLoaded() && distanceToEnd(log) < 2 * NEAR_END_PX) &&
      !(PHONE.matches && isQuestionVisible()),
  );
  updateButtonLabel();
  lastTop = log.scrollTop;
  lastHeight = log.clientHeight;
}

/** Returns the first question that waits for an answer, or null. */
export const openQuestion = () => list.querySelector(".question[data-open=yes]");

/** Returns whether the open question is in view. On phones, its buttons are in view then, too. */
const isQuestionVisible = () => topOf(openQuestion()) < log.clientHeight - NEAR_END_PX;

/** Returns the question further below, if this user can answer it, or null. */
const questionBelow = () => (canEdit && !isQuestionVisible() ? openQuestion() : null);

/** Returns the position of an element in the list, or NaN without one. */
const topOf = (element) => element?.getBoundingClientRect().top - log.getBoundingClientRect().top;
const lastSequence = () => Number([...list.children].findLast((each) => each.dataset.sequence)?.dataset.sequence ?? 0);

/** Names the question further below on the button, or the number of messages that came since the user left the end. */
function updateButtonLabel() {
  if (button.hidden) return;
  let added = 0;
  for (
    let last = list.lastElementChild;
    last && !(Number(last.dataset.sequence) <= seenSequence);
    last = last.previousElementSibling
  ) {
    if (last.matches(COUNTED)) added += 1;
  }
  const known = isNewestLoaded() ? added : 0;
  const newText = known === 1 ? words.newMessage : format(words.newMessages, { count: known });
  const text = questionBelow() ? words.questionGo : known === 0 ? words.latest : newText;
  if (label.textContent !== text) label.textContent = text;
}

/** Stops following the end when the user opens an element, so that the element stays in view. */
function handleOpened(event) {
  if (!event.target.closest("summary, [data-action=expand]")) return;
  stopFollowing();
  requestAnimationFrame(handleScroll);
}

function keepPositionWhileLoading() {
  let anchor = null;
  let top = 0;
  const isPage = (event) => event.detail.ctx.target?.id === "messages";
  const restore = () => {
    if (anchor) log.scrollTop += anchor.getBoundingClientRect().top - top;
  };
  document.addEventListener("htmx:before:swap", (event) => {
    if (!isPage(event)) return;
    // A held or restored line may not have its final position yet, so keep the position that it should have.
    const line = heldLine ?? restored;
    anchor = line?.each ?? firstVisible();
    top = line ? line.top + log.getBoundingClientRect().top : (anchor?.getBoundingClientRect().top ?? 0);
    heldLine = null;
    log.classList.add("holding");
  });
  document.addEventListener("htmx:after:swap", async (event) => {
    if (!isPage(event)) return;
    restore();
    await repeatWhileResizing(restore);
    anchor = null;
    log.classList.remove("holding");
    lastTop = log.scrollTop;
  });
}

function storePosition() {
  const first = firstVisible();
  writeTab(PLACE_NAME, destination ?? (isFollowing || !first ? null : { id: first.id, top: topOf(first) }));
}

// The line of a day opens a box, which leads to another day, to the first message, or to the latest.

function closeAndGo(go) {
  closePopover();
  go();
}

/** Formats a date for a date field, in the user's time zone: 2026-02-28. */
const localDay = (date) =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0")).join("-");

function connectJump() {
  onAction("jump", (button) => {
    const box = openPopover(button, { className: "jump", label: words.jump });
    if (!box) return;
    box.append(document.getElementById("jump").content.cloneNode(true));
    const field = box.querySelector("input");
    field.max = localDay(new Date());
    field.value = localDay(new Date(Number(button.parentElement.dataset.of)));
    box.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value) closeAndGo(() => scrollToTime(new Date(`${field.value}T00:00`)));
    });
    box.addEventListener("click", ({ target }) => {
      const go = { start: scrollToStart, end: scrollToEnd }[target.closest("[data-to]")?.dataset.to];
      if (go) closeAndGo(go);
    });
    field.focus();
  });
}

// Links to single messages (`#m_…`), wherever in the session they are.

const ADDRESS = /^#(m_[0-9a-z]+)$/;

/** Goes to a message, loading the messages around it if necessary. Highlights it for a moment unless `quietly`. */
export async function goToMessage(id, { quietly = false } = {}) {
  const hasActed = watchUser();
  const isThere = await goToPlace({ id, top: log.clientHeight / 2 }, scrollToMessage);
  if (isThere === false) return showNotice(words.messageGone);
  if (quietly || !isThere) return;
  const message = document.getElementById(id);
  focusUnless(hasActed, message);
  highlight(message);
}

/** Goes to the message in the address, or to the stored position. */
async function connectDeeplink() {
  addEventListener("hashchange", goToAddress);
  document.addEventListener(
    "click",
    ({ target }) => target.closest?.("a[href]")?.href === location.href && goToAddress(),
  );
  if ((await restorePosition()) === false) await goToAddress();
}

async function goToAddress() {
  const id = ADDRESS.exec(location.hash)?.[1];
  if (id) await goToMessage(id);
}

function scrollToMessage(message) {
  message.scrollIntoView({ block: message.offsetHeight > log.clientHeight * 0.8 ? "start" : "center" });
}

function highlight(message) {
  const accent = getComputedStyle(message).getPropertyValue("--accent-soft");
  const ground = [
    { backgroundColor: accent, borderRadius: "10px" },
    { backgroundColor: accent, offset: 0.6 },
    { backgroundColor: "transparent" },
  ];
  message.animate(ground, { duration: 2400, easing: "ease-out" });
}

export function connect() {
  loadedPart.connect();
  connectScroll();
  connectJump();
  connectDeeplink();
}
