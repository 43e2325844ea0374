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
const NOTHING = { ids: [], counts: [], more: false };
const watcher = new MutationObserver(() => (due ||= setTimeout(mark, SETTLED)));
let ids = []; // of the messages that match
let counts = []; // how often each of them does, as far as the server knows
let more = false;
let at = -1;
let nth = 0; // the current hit within the current message
let ranges = new Map(); // the hits in the messages that the page shows, by the message's id
let hasFailed = false; // the search itself; Enter tries again
let isThere = false; // whether the page shows this match
let asked = 0;
let timer = 0;
let due = 0;
let before = null;

/** Opens the search with a text, or the one that is selected on the page; `typed` is what the user has begun to type. */
export function open(text, typed) {
  const chosen = typed || text || String(getSelection()).trim().split("\n")[0].slice(0, 100);
  if (!panel.isConnected) {
    before = document.activeElement;
    document.getElementById("log").before(panel);
    watcher.observe(list, { childList: true, subtree: true, characterData: true });
  }
  if (chosen) field.value = chosen;
  field.focus();
  if (!typed) field.select();
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
  const found = query ? await ask(query) : NOTHING;
  if (mine !== asked) return;
  hasFailed = found === null;
  ({ ids, counts, more } = found ?? NOTHING);
  [at, nth] = [nearest(), 0];
  isThere = document.getElementById(ids[at]) !== null;
  mark();
}

const ask = (query) => valueAt(`${location.pathname}find?q=${encodeURIComponent(query)}`);

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
  const hits = ids.map((_, index) => hitsIn(index));
  const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
  const count = more ? `${sum(hits)}+` : sum(hits);
  said.textContent = !field.value.trim()
    ? ""
    : ids.length
      ? fill(isThere ? words.found : words.foundElsewhere, { index: sum(hits.slice(0, at)) + nth + 1, count })
      : hasFailed
        ? words.findFailed
        : words.foundNone;
  for (const button of steps) button.disabled = !ids.length;
}

/** The number of hits in a message; one that is found by what the page does not show, such as a link, is one hit. */
function hitsIn(index) {
  return ranges.has(ids[index]) ? Math.max(1, ranges.get(ids[index]).length) : counts[index];
}

async function step(by) {
  if (hasFailed) return search();
  if (!ids.length) return;
  const from = isThere ? at : -1;
  if (isThere) move(by);
  isThere = true;
  show();
  if (at !== from || !document.getElementById(ids[at])) await reveal(ids[at], { quietly: true });
  unfold(document.getElementById(ids[at]));
  mark();
  into(ranges.get(ids[at])?.[nth]);
}

/** Moves to the next hit (1) or the previous one (-1); after the last hit follows the first. */
function move(by) {
  nth += by;
  if (nth >= 0 && nth < hitsIn(at)) return;
  at = (at + by + ids.length) % ids.length;
  nth = by > 0 ? 0 : hitsIn(at) - 1;
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

/** Scrolls to a hit in a message that is taller than the screen. */
function into(range) {
  const rect = range?.getBoundingClientRect();
  const log = document.getElementById("log");
  const edge = log.getBoundingClientRect();
  if (rect?.height && (rect.top < edge.top || rect.bottom > edge.bottom))
    log.scrollTop += rect.top - edge.top - edge.height / 3;
}

function mark() {
  clearTimeout(due);
  due = 0;
  if (!panel.isConnected) return;
  const hits = new Set(ids);
  const shown = [...list.children].filter((each) => hits.has(each.id));
  ranges = new Map(shown.map((message) => [message.id, rangesIn(message)]));
  if (ids.length) nth = Math.min(nth, hitsIn(at) - 1); // text may have changed, and the server's count is of the source
  show();
  if (!CSS.highlights) return;
  const now = ranges.get(ids[at])?.[nth];
  const current = new Highlight(...(now ? [now] : []));
  current.priority = 1;
  CSS.highlights.set("found", new Highlight(...[...ranges.values()].flat()));
  CSS.highlights.set("found-now", current);
}

function clear() {
  ranges = new Map();
  CSS.highlights?.delete("found");
  CSS.highlights?.delete("found-now");
}

/** Skips what the page hides from sight, with all that is in it. */
function isSeen(node) {
  if (node.nodeType === Node.TEXT_NODE) return NodeFilter.FILTER_ACCEPT;
  return node.matches(".sr-only, [hidden]") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
}

/** Returns the ranges of the matches in a message, which may span several text nodes. */
function rangesIn(message) {
  const query = field.value.trim().toLocaleLowerCase();
  const kinds = NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT;
  const walker = document.createTreeWalker(message.querySelector(".column") ?? message, kinds, isSeen);
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
