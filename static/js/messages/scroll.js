// The scroll position: at the end it follows new messages, elsewhere it stays; and ways to a message, a day or an end.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import { textAt } from "../net/http.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import { on, PHONE } from "../ui/commands.js";
import { parse } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { notice } from "../ui/notice.js";
import { close, openBox } from "../ui/popover.js";
import { adopt, beyond, lacks, momentOf, unfold } from "./list.js";
import { canEdit, live } from "./session.js";
import { unfoldSummary } from "./summary.js";

// The loaded part of a long session: at first the newest page, later any part.

const log = document.getElementById("log");
const list = document.getElementById("messages");

/** Loads a message and those around it, then calls `place` to go there; resolves to false if it does not exist. */
const showAround = (id, place) => show(`?around=${encodeURIComponent(id)}`, place);

/** Loads the first page, then calls `place` to go there. */
const showOldest = (place) => show("?start=yes", place);

/** Loads the first messages at or after a time, or the newest, then calls `place` to go there. */
const showSince = (moment, place) => show(`?since=${encodeURIComponent(moment.toISOString())}`, place);

/** Loads the newest page. */
const showNewest = () => show("", () => (log.scrollTop = log.scrollHeight));

async function show(query, place) {
  const known = live.revision;
  const html = await textAt(`${location.pathname}messages${query}`);
  if (html === null) return false;
  const page = parse(html);
  for (const id of ["older", "newer"]) {
    const end = page.querySelector(`#${id}`);
    end.removeAttribute("hx-swap-oob");
    document.getElementById(id).replaceWith(end);
  }
  list.replaceChildren(...page.children);
  adopt([...list.children]);
  place(); // before messages near the position are loaded
  htmx.process(log);
  live.sync(known); // also for streaming texts
  return true;
}

function connectPages() {
  document.addEventListener("htmx:config:request", ({ target, detail: { ctx } }) => {
    if (!["older", "newer"].includes(target.id)) return;
    ctx.known = live.revision;
    for (const [name, place] of Object.entries(beyond(target.id))) ctx.request.body.set(name, place);
  });
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (ctx.known === undefined) return;
    const { revision } = document.getElementById(ctx.sourceElement.id).dataset;
    // Changes since the request may be missing in the answer, or may have missed messages that were not loaded yet.
    if (live.revision > ctx.known || Number(revision) > ctx.known) live.sync(ctx.known);
  });
}

const NEAR = 40;
const COUNTED = "article.message:is(.user, .assistant, .error)"; // tool calls don't count as messages
const button = document.querySelector("[data-action=latest]");
const label = button.querySelector("span");
const PLACE = `parley:place:${document.getElementById("main").dataset.session}`;
let following = true;
let bound = null; // the target position, until it is reached or the user scrolls
let lastTop = 0;
let lastRoom = 0; // the visible height
let seen = 0; // the last sequence number when the user left the end

const distance = () => log.scrollHeight - log.scrollTop - log.clientHeight;
const isWhole = () => !lacks("newer");

/** Goes to the end and follows it again. */
export async function toEnd() {
  // Remove the message from the address, so that its link works again.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (!isWhole()) await showNewest();
  follow();
}

/** Goes to the first message of the session. */
export async function toStart() {
  leave();
  const top = () => (log.scrollTop = 0);
  if (lacks("older")) await showOldest(top);
  await settle(top);
  list.querySelector("article.message")?.focus({ preventScroll: true });
}

/** Goes to the first message at or after a time, or to the last one. */
async function toMoment(moment) {
  const isSince = (element) => momentOf(element) >= moment;
  const first = () => [...list.querySelectorAll("article.message")].find(isSince);
  leave();
  let found = null;
  await showSince(moment, () => (found = first()));
  if (!found) return toEnd();
  await take({ id: found.id, top: 0 }, (message) => message.scrollIntoView({ block: "start" }));
  document.getElementById(found.id)?.focus({ preventScroll: true });
}

/**
 * Changes the list and keeps the place: the end, or the line at the upper edge if `moves`. An open question under the
 * pointer or with the focus stays where it is, so that a press reaches the button that it was aimed at.
 */
export function keepPlace(change, { moves = true } = {}) {
  const question = questionInUse();
  const edge = following || !moves ? [] : atEdge();
  const held = (question ? [question, ...edge] : edge).map((each) => ({
    each,
    top: topOf(each),
    text: each.textContent,
  }));
  // Browsers that keep the line themselves give up where the margins of its message change, as below a removed one.
  const holds = held.length > 0 && !log.classList.contains("holding");
  if (holds) log.classList.add("holding");
  change();
  const there = held.filter(({ each }) => each.checkVisibility() && (each !== question || isOpen(each)));
  // One with another text may be another block in the same element, as at the end of a stream.
  const isSame = ({ each, text }) => each === question || each.textContent === text;
  const line = there.find(isSame) ?? there.find(({ each, text }) => each.textContent.startsWith(text));
  if (line) lastTop = log.scrollTop += topOf(line.each) - line.top;
  if (line && line.each === question && distance() > NEAR) leave();
  if (holds) log.classList.remove("holding");
  if (following) follow();
  else count();
}

const PIECES = "[data-body] > *, .plain, .tool, .question";

/** Returns the first piece in view of the message at the upper edge, and of each after it. Its name may come and go. */
function atEdge() {
  const found = [];
  for (let next = firstVisible(); next && topOf(next) < log.clientHeight; next = next.nextElementSibling) {
    const pieces = next.dataset.sequence ? [...next.querySelectorAll(PIECES)] : [];
    found.push(pieces.find((each) => topOf(each) + each.offsetHeight > 0) ?? next);
  }
  return found;
}

let pointedAt = null;
const isOpen = (question) => question?.dataset.open === "yes";
const questionInUse = () =>
  [pointedAt, document.activeElement].map((element) => element?.closest(".question")).find(isOpen);

/** Stops following the end. */
export function leave() {
  if (following) seen = lastSequence();
  following = false;
}

function connectScroll() {
  follow();
  log.dataset.ready = "";
  log.addEventListener("scroll", moved, { passive: true });
  button.addEventListener("click", async () => {
    await toEnd();
    log.focus({ preventScroll: true });
  });
  log.addEventListener("click", opened);
  list.addEventListener("pointerover", ({ target }) => (pointedAt = target));
  list.addEventListener("pointerleave", () => (pointedAt = null));
  // Messages get their real height only when they come into view, so the end also moves without new messages.
  const observer = new ResizeObserver(() => following && follow());
  for (const element of [log, ...log.children]) observer.observe(element);
  keepWhileOthersLoad();
  addEventListener("pagehide", remember);
}

/** Restores the position from before a reload; returns whether there is one. */
export async function restore() {
  const { type } = performance.getEntriesByType("navigation")[0] ?? {};
  const place = ["reload", "back_forward"].includes(type) ? keptInTab(PLACE) : null;
  if (!place) return false;
  return take(place, (message) => (log.scrollTop += topOf(message) - place.top));
}

/**
 * Goes to a message, loading those around it if necessary; `go` scrolls to it. Until it is reached, this is the stored
 * position, `top` px below the list's edge. Resolves to whether the message exists.
 */
export async function take(place, go) {
  const found = () => document.getElementById(place.id);
  const step = () => {
    unfold(found());
    unfoldSummary(found());
    if (found()) go(found());
  };
  leave();
  bound = place;
  if (!found() && !(await showAround(place.id, step))) return false; // also if the page is being left
  await settle(step);
  if (bound === place) bound = null;
  return found() !== null;
}

/** Repeats a step while new content in view gets its real height, which takes a few frames. */
async function settle(step) {
  for (let frame = 0; frame < 4; frame++) {
    step();
    await new Promise(requestAnimationFrame);
  }
  moved();
}

/** Returns the topmost visible message. */
export function firstVisible() {
  const edge = log.getBoundingClientRect().top;
  return [...list.children].find(
    (message) => message.dataset.sequence && message.getBoundingClientRect().bottom > edge,
  );
}

function follow() {
  following = true;
  bound = null;
  offerEnd(false);
  log.scrollTop = log.scrollHeight;
  lastTop = log.scrollTop;
  lastRoom = log.clientHeight;
}

/** Shows or hides the button. Chromium computes styles again even if the attribute stays the same. */
function offerEnd(isOffered) {
  if (button.hidden === isOffered) button.hidden = !isOffered;
}

function moved() {
  // New content below never moves the position up. A growing window does, until its content has its new height.
  if (distance() < NEAR && isWhole()) following = true;
  else if (log.scrollTop < lastTop - 1 && log.clientHeight === lastRoom) {
    bound = null;
    leave();
  }
  offerEnd(!following && !(isWhole() && distance() < 2 * NEAR) && !(PHONE.matches && seesQuestion()));
  count();
  lastTop = log.scrollTop;
  lastRoom = log.clientHeight;
}

/** Returns the first question that waits for an answer, or null. */
export const openQuestion = () => list.querySelector(".question[data-open=yes]");

/** Returns whether an open question is in view: on phones its buttons are then, too. */
function seesQuestion() {
  const question = openQuestion();
  return question !== null && topOf(question) < log.clientHeight - NEAR;
}

const topOf = (element) => element.getBoundingClientRect().top - log.getBoundingClientRect().top;
const lastSequence = () => Number([...list.children].findLast((each) => each.dataset.sequence)?.dataset.sequence ?? 0);

/** Shows on the button that the agent asks, or else how many messages have arrived since the user left the end. */
function count() {
  if (button.hidden) return;
  let added = 0;
  for (
    let last = list.lastElementChild;
    last && !(Number(last.dataset.sequence) <= seen);
    last = last.previousElementSibling
  ) {
    if (last.matches(COUNTED)) added += 1;
  }
  const known = isWhole() ? added : 0;
  const said = known === 1 ? words.newMessage : fill(words.newMessages, { count: known });
  const text = canEdit && openQuestion() ? words.questionGo : known === 0 ? words.latest : said;
  if (label.textContent !== text) label.textContent = text;
}

/** Keeps an element that the user opens in view. */
function opened(event) {
  if (!event.target.closest("summary, [data-action=expand]")) return;
  leave();
  requestAnimationFrame(moved);
}

function keepWhileOthersLoad() {
  let anchor = null;
  let top = 0;
  const isPage = (event) => event.detail.ctx.target?.id === "messages";
  const restore = () => {
    if (anchor) log.scrollTop += anchor.getBoundingClientRect().top - top;
  };
  document.addEventListener("htmx:before:swap", (event) => {
    if (!isPage(event)) return;
    anchor = firstVisible();
    top = anchor?.getBoundingClientRect().top ?? 0;
    log.classList.add("holding");
  });
  document.addEventListener("htmx:after:swap", async (event) => {
    if (!isPage(event)) return;
    restore();
    await settle(restore);
    anchor = null;
    log.classList.remove("holding");
    lastTop = log.scrollTop;
  });
}

function remember() {
  const first = firstVisible();
  keepInTab(PLACE, bound ?? (following || !first ? null : { id: first.id, top: topOf(first) }));
}

// Links to single messages (`#m_…`), wherever in the session they are.

// The line of a day opens a small box for going to another day, to the first message, or to the latest.

function go(way) {
  close();
  way();
}

/** Formats a date for a date field, in the user's time zone: 2026-02-28. */
const localDay = (date) =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0")).join("-");

function connectJump() {
  on("jump", (button) => {
    const box = openBox(button, { className: "jump", label: words.jump });
    if (!box) return;
    box.append(document.getElementById("jump").content.cloneNode(true));
    const field = box.querySelector("input");
    field.max = localDay(new Date());
    field.value = localDay(new Date(Number(button.parentElement.dataset.of)));
    box.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value) go(() => toMoment(new Date(`${field.value}T00:00`)));
    });
    box.addEventListener("click", ({ target }) => {
      const way = { start: toStart, end: toEnd }[target.closest("[data-to]")?.dataset.to];
      if (way) go(way);
    });
    field.focus();
  });
}

const ADDRESS = /^#(m_[0-9a-z]+)$/;

/** Goes to a message, loading the ones around it if necessary, and highlights it for a moment unless `quietly`. */
export async function reveal(id, { quietly = false } = {}) {
  if (!(await take({ id, top: log.clientHeight / 2 }, bring))) return notice(words.messageGone);
  if (quietly) return;
  const message = document.getElementById(id);
  message.focus({ preventScroll: true });
  flash(message);
}

/** Goes to the message in the address, or to the stored position. */
async function connectDeeplink() {
  addEventListener("hashchange", followAddress);
  document.addEventListener(
    "click",
    ({ target }) => target.closest?.("a[href]")?.href === location.href && followAddress(),
  );
  if (!(await restore())) await followAddress();
}

async function followAddress() {
  const id = ADDRESS.exec(location.hash)?.[1];
  if (id) await reveal(id);
}

function bring(message) {
  message.scrollIntoView({ block: message.offsetHeight > log.clientHeight * 0.8 ? "start" : "center" });
}

function flash(message) {
  const accent = getComputedStyle(message).getPropertyValue("--accent-soft");
  const ground = [
    { backgroundColor: accent, borderRadius: "10px" },
    { backgroundColor: accent, offset: 0.6 },
    { backgroundColor: "transparent" },
  ];
  message.animate(ground, { duration: 2400, easing: "ease-out" });
}

function connectPlaces() {
  connectJump();
  connectDeeplink();
}

export function connect() {
  connectPages();
  connectScroll();
  connectPlaces();
}
