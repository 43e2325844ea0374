// The reader's place: at the end it follows what comes, anywhere else it is never taken away.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import { textAt } from "../net/http.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import { parse } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { adopt, beyond, lacks } from "./list.js";
import { live } from "./session.js";
import { unfold } from "./tool_runs.js";

// Which part of a long session the list shows: it begins with the newest page, and can go to any message.

const log = document.getElementById("log");
const list = document.getElementById("messages");

/** Shows a message with what stands around it, and calls `place` to go there; false when there is none. */
const showAround = (id, place) => show(`?around=${encodeURIComponent(id)}`, place);

/** Shows the beginning, and calls `place` to go there. */
const showOldest = (place) => show("?start=yes", place);

/** Shows the first messages at or after a moment, and calls `place` to go there; the newest if there are none. */
const showSince = (moment, place) => show(`?since=${encodeURIComponent(moment.toISOString())}`, place);

/** Shows the end again. */
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
  place(); // before what is near the reader is loaded
  htmx.process(log);
  live.sync(known); // and the texts that are being written
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
    // What has changed since it was asked for may be missing in what came, or not have found what was on its way.
    if (live.revision > ctx.known || Number(revision) > ctx.known) live.sync(ctx.known);
  });
}

const NEAR = 40;
const COUNTED = "article.message:is(.user, .assistant, .error)"; // a turn's forty tools are not forty messages
const button = document.querySelector("[data-action=latest]");
const label = button.querySelector("span");
const PLACE = `parley:place:${document.getElementById("main").dataset.session}`;
let following = true;
let bound = null; // the place to which the reader is being taken, until they are there or go elsewhere
let lastTop = 0;
let lastRoom = 0; // the height of what is visible
let seen = 0; // the last sequence number when the reader left the end

const distance = () => log.scrollHeight - log.scrollTop - log.clientHeight;
const isWhole = () => !lacks("newer");

/** Goes to the end and follows it again. */
export async function toEnd() {
  // The address of a message that the reader has left would lead nowhere when it is followed again.
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

/** Goes to the first message at or after a moment, or to the last one if there is none. */
export async function toMoment(moment) {
  const isSince = (element) => new Date(element.querySelector("time[datetime]")?.dateTime) >= moment;
  const first = () => [...list.querySelectorAll("article.message")].find(isSince);
  leave();
  let found = null;
  await showSince(moment, () => (found = first()));
  if (!found) return toEnd();
  await take({ id: found.id, top: 0 }, (message) => message.scrollIntoView({ block: "start" }));
  document.getElementById(found.id)?.focus({ preventScroll: true });
}

/** Call after the list has changed. */
export function keepPlace() {
  if (following) follow();
  else count();
}

/** Lets the reader stay where they are taken, whatever comes. */
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
  // Messages get their true height only when they come into view, so the end moves by itself too.
  const observer = new ResizeObserver(() => following && follow());
  for (const element of [log, ...log.children]) observer.observe(element);
  keepWhileOthersLoad();
  addEventListener("pagehide", remember);
}

/** Goes back to where somebody was before they loaded the page again; whether there is such a place. */
export async function restore() {
  const { type } = performance.getEntriesByType("navigation")[0] ?? {};
  const place = ["reload", "back_forward"].includes(type) ? keptInTab(PLACE) : null;
  if (!place) return false;
  return take(place, (message) => (log.scrollTop += topOf(message) - place.top));
}

/**
 * Takes the reader to a message and loads what stands around it where need be; `go` brings it into view. Until they are
 * there it is their place, `top` px below the list's edge, if the page is left. Resolves to whether there is such a message.
 */
export async function take(place, go) {
  const found = () => document.getElementById(place.id);
  const step = () => {
    unfold(found());
    if (found()) go(found());
  };
  leave();
  bound = place;
  if (!found() && !(await showAround(place.id, step))) return false; // maybe for the page is just being left
  await settle(step);
  if (bound === place) bound = null;
  return found() !== null;
}

/** Repeats a step while what came into view gets its true height, which takes a few frames. */
async function settle(step) {
  for (let frame = 0; frame < 4; frame++) {
    step();
    await new Promise(requestAnimationFrame);
  }
  moved();
}

/** The message that the reader has at the top. */
export function firstVisible() {
  const edge = log.getBoundingClientRect().top;
  return [...list.children].find(
    (message) => message.dataset.sequence && message.getBoundingClientRect().bottom > edge,
  );
}

function follow() {
  following = true;
  bound = null;
  button.hidden = true;
  log.scrollTop = log.scrollHeight;
  lastTop = log.scrollTop;
  lastRoom = log.clientHeight;
}

function moved() {
  // Growth below never moves the reader up. A window that grows does, before what it shows has its new height.
  if (distance() < NEAR && isWhole()) following = true;
  else if (log.scrollTop < lastTop - 1 && log.clientHeight === lastRoom) {
    bound = null;
    leave();
  }
  button.hidden = following || (isWhole() && distance() < 2 * NEAR);
  count();
  lastTop = log.scrollTop;
  lastRoom = log.clientHeight;
}

const topOf = (element) => element.getBoundingClientRect().top - log.getBoundingClientRect().top;
const lastSequence = () => Number([...list.children].findLast((each) => each.dataset.sequence)?.dataset.sequence ?? 0);

/** Says on the button how many messages have come since the reader left the end. */
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
  const text = known === 0 ? words.latest : known === 1 ? words.newMessage : fill(words.newMessages, { count: known });
  if (label.textContent !== text) label.textContent = text;
}

/** Whoever opens something wants to see it, not what is below it. */
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

export function connect() {
  connectPages();
  connectScroll();
}
