// Find in session: the server finds matches, also in messages that are not loaded, and the page marks them.
import { valueAt } from "../net/http.js";
import { composing } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { firstVisible, reveal } from "./scroll.js";

const QUIET = 200; // ms after the last letter
const SETTLED = 250; // ms without changes, so that streaming text is not marked word by word
const list = document.getElementById("messages");
const panel = document.getElementById("find").content.firstElementChild;
const field = panel.querySelector("input");
const said = panel.querySelector("output");
const steps = panel.querySelectorAll("[data-step]");
const watcher = new MutationObserver(() => (due ||= setTimeout(mark, SETTLED)));
let ids = [];
let more = false;
let at = -1;
let isThere = false; // whether the page shows this match
let asked = 0;
let timer = 0;
let due = 0;
let before = null;

/** Opens the search with a text, or with the one that is selected on the page. */
export function open(text) {
  const chosen = text || String(getSelection()).trim().split("\n")[0].slice(0, 100);
  if (!panel.isConnected) {
    before = document.activeElement;
    document.getElementById("log").before(panel);
    watcher.observe(list, { childList: true, subtree: true, characterData: true });
  }
  if (chosen) field.value = chosen;
  field.focus();
  field.select();
  search();
}

function close() {
  panel.remove();
  watcher.disconnect();
  clear();
  const present = document.getElementById(ids[at]);
  (present ?? before)?.focus?.({ preventScroll: true });
}

async function search() {
  const query = field.value.trim();
  const mine = ++asked;
  const found = query ? await ask(query) : { ids: [], more: false };
  if (mine !== asked) return;
  ({ ids, more } = found);
  at = nearest();
  isThere = document.getElementById(ids[at]) !== null;
  show();
  mark();
}

async function ask(query) {
  return (await valueAt(`${location.pathname}find?q=${encodeURIComponent(query)}`)) ?? { ids: [], more: false };
}

/** Returns the first match from the scroll position on, or the last one. */
function nearest() {
  const here = firstVisible();
  if (!ids.length || !here) return ids.length - 1;
  const shown = [...list.children].filter((each) => each.dataset.sequence);
  const below = new Set(shown.slice(shown.indexOf(here)).map((each) => each.id));
  const first = ids.findIndex((id) => below.has(id));
  return first < 0 ? ids.length - 1 : first;
}

function show() {
  const count = more ? `${ids.length}+` : ids.length;
  said.textContent = !field.value.trim()
    ? ""
    : ids.length
      ? fill(isThere ? words.found : words.foundElsewhere, { index: at + 1, count })
      : words.foundNone;
  for (const button of steps) button.disabled = !ids.length;
}

async function step(by) {
  if (!ids.length) return;
  if (isThere) at = (at + by + ids.length) % ids.length;
  isThere = true;
  show();
  await reveal(ids[at], { quietly: true });
  const message = document.getElementById(ids[at]);
  unfold(message);
  mark();
  into(message);
}

/** Unfolds the elements that contain a match. */
function unfold(message) {
  const query = field.value.trim().toLocaleLowerCase();
  for (const fold of message?.querySelectorAll("details:not([open])") ?? []) {
    if (fold.textContent.toLocaleLowerCase().includes(query)) fold.open = true;
  }
  const long = message?.querySelector(".long:not([data-expanded])");
  if (long) long.dataset.expanded = "";
}

/** Scrolls to the first match in a message that is taller than the screen. */
function into(message) {
  const range = message && rangesIn(message)[0];
  const rect = range?.getBoundingClientRect();
  const log = document.getElementById("log");
  const edge = log.getBoundingClientRect();
  if (rect?.height && (rect.top < edge.top || rect.bottom > edge.bottom))
    log.scrollTop += rect.top - edge.top - edge.height / 3;
}

function mark() {
  clearTimeout(due);
  due = 0;
  if (!panel.isConnected || !CSS.highlights) return;
  const hits = new Set(ids);
  const all = [...list.children].filter((each) => hits.has(each.id)).flatMap(rangesIn);
  const now = document.getElementById(ids[at]);
  CSS.highlights.set("found", new Highlight(...all));
  CSS.highlights.set("found-now", new Highlight(...(now ? rangesIn(now) : [])));
}

function clear() {
  CSS.highlights?.delete("found");
  CSS.highlights?.delete("found-now");
}

/** Returns the ranges of the matches in a message, which may span several text nodes. */
function rangesIn(message) {
  const query = field.value.trim().toLocaleLowerCase();
  const walker = document.createTreeWalker(message.querySelector(".column") ?? message, NodeFilter.SHOW_TEXT);
  const ranges = [];
  while (query && walker.nextNode()) {
    const text = walker.currentNode.data.toLocaleLowerCase();
    if (text.length !== walker.currentNode.data.length) continue; // lower case may change the length of a text
    for (let start = text.indexOf(query); start >= 0; start = text.indexOf(query, start + query.length)) {
      const range = new Range();
      range.setStart(walker.currentNode, start);
      range.setEnd(walker.currentNode, start + query.length);
      ranges.push(range);
    }
  }
  return ranges;
}

export function connect() {
  panel.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, QUIET);
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !composing(event)) close();
    else if (event.key === "Enter" && event.target === field && !composing(event)) step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  panel.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button?.dataset.step) step(Number(button.dataset.step));
    else if (button) close();
  });
}
