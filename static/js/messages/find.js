// Find in session. The server finds matches, also in messages that are not loaded, and the page marks them.
import { fetchJson } from "../net/http.js";
import { isComposing } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { firstVisible, goToMessage } from "./scroll.js";

const TYPING_PAUSE_MS = 200; // ms after the last letter
const MARK_DELAY_MS = 250; // ms after a change, so that streaming text is not marked word by word
const list = document.getElementById("messages");
const panel = document.getElementById("find").content.firstElementChild;
const field = panel.querySelector("input");
const status = panel.querySelector("output");
const steps = panel.querySelectorAll("[data-step]");
const NO_MATCHES = { ids: [], counts: [], more: false };
const watcher = new MutationObserver(() => (markTimer ||= setTimeout(markHits, MARK_DELAY_MS)));
let matchIds = []; // the ids of the messages that match
let hitCounts = []; // the number of hits in each of these messages, counted by the server in their source
let hasMore = false;
let matchIndex = -1;
let hitIndex = 0; // the current hit within the current message
let ranges = new Map(); // the hits in the messages that the page shows, by the message's id
let hasFailed = false; // the request has failed; Enter repeats it
let isMatchShown = false; // the page shows the current match
let lastSearch = 0;
let searchTimer = 0;
let markTimer = 0;
let previousFocus = null;

/** Opens the search with `typed` (typed while this module was loading), `text`, or the text selected on the page. */
export function open(text, typed) {
  const chosen = typed || text || String(getSelection()).trim().split("\n")[0].slice(0, 100);
  if (!panel.isConnected) {
    previousFocus = document.activeElement;
    document.getElementById("log").before(panel);
    watcher.observe(list, { childList: true, subtree: true, characterData: true });
  }
  if (chosen) field.value = chosen;
  field.focus();
  if (!typed) field.select();
  search();
}

function closeFind() {
  panel.remove();
  watcher.disconnect();
  clearMarks();
  const present = document.getElementById(matchIds[matchIndex]);
  (present ?? previousFocus)?.focus?.({ preventScroll: true });
}

async function search() {
  const query = field.value.trim();
  const mine = ++lastSearch;
  const found = query ? await fetchMatches(query) : NO_MATCHES;
  if (mine !== lastSearch) return;
  hasFailed = found === null;
  ({ ids: matchIds, counts: hitCounts, more: hasMore } = found ?? NO_MATCHES);
  [matchIndex, hitIndex] = [nearestMatch(), 0];
  isMatchShown = document.getElementById(matchIds[matchIndex]) !== null;
  markHits();
}

const fetchMatches = (query) => fetchJson(`${location.pathname}find?q=${encodeURIComponent(query)}`);

/** Returns the index of the first match below the scroll position, or else of the last match, or -1 without matches. */
function nearestMatch() {
  const here = firstVisible();
  if (!matchIds.length || !here) return matchIds.length - 1;
  const shown = [...list.children].filter((each) => each.dataset.sequence);
  const below = new Set(shown.slice(shown.indexOf(here)).map((each) => each.id));
  const first = matchIds.findIndex((id) => below.has(id));
  return first < 0 ? matchIds.length - 1 : first;
}

function showCount() {
  const hits = matchIds.map((_, index) => hitsIn(index));
  const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
  const count = hasMore ? `${sum(hits)}+` : sum(hits);
  status.textContent = !field.value.trim()
    ? ""
    : matchIds.length
      ? format(isMatchShown ? words.found : words.foundElsewhere, {
          index: sum(hits.slice(0, matchIndex)) + hitIndex + 1,
          count,
        })
      : hasFailed
        ? words.findFailed
        : words.foundNone;
  for (const button of steps) button.disabled = !matchIds.length;
}

/** Returns the number of hits in a message: at least one, because hidden text such as a link's address can match. */
function hitsIn(index) {
  return ranges.has(matchIds[index]) ? Math.max(1, ranges.get(matchIds[index]).length) : hitCounts[index];
}

async function goToHit(by) {
  if (hasFailed) return search();
  if (!matchIds.length) return;
  const from = isMatchShown ? matchIndex : -1;
  if (isMatchShown) selectHit(by);
  isMatchShown = true;
  showCount();
  if (matchIndex !== from || !document.getElementById(matchIds[matchIndex]))
    await goToMessage(matchIds[matchIndex], { quietly: true });
  unfoldMatch(document.getElementById(matchIds[matchIndex]));
  markHits();
  scrollToHit(ranges.get(matchIds[matchIndex])?.[hitIndex]);
}

/** Moves to the next hit (1) or the previous one (-1). After the last hit comes the first. */
function selectHit(by) {
  hitIndex += by;
  if (hitIndex >= 0 && hitIndex < hitsIn(matchIndex)) return;
  matchIndex = (matchIndex + by + matchIds.length) % matchIds.length;
  hitIndex = by > 0 ? 0 : hitsIn(matchIndex) - 1;
}

/** Unfolds the elements that contain a match. */
function unfoldMatch(message) {
  const query = field.value.trim().toLocaleLowerCase();
  for (const fold of message?.querySelectorAll("details:not([open])") ?? []) {
    if (fold.textContent.toLocaleLowerCase().includes(query)) fold.open = true;
  }
  const long = message?.querySelector(".long:not([data-expanded])");
  if (long) long.dataset.expanded = "";
}

/** Scrolls to a hit in a message that is taller than the screen. */
function scrollToHit(range) {
  const rect = range?.getBoundingClientRect();
  const log = document.getElementById("log");
  const edge = log.getBoundingClientRect();
  if (rect?.height && (rect.top < edge.top || rect.bottom > edge.bottom))
    log.scrollTop += rect.top - edge.top - edge.height / 3;
}

function markHits() {
  clearTimeout(markTimer);
  markTimer = 0;
  if (!panel.isConnected) return;
  const hits = new Set(matchIds);
  const shown = [...list.children].filter((each) => hits.has(each.id));
  ranges = new Map(shown.map((message) => [message.id, rangesIn(message)]));
  // The page may show fewer hits than the server found in the source.
  if (matchIds.length) hitIndex = Math.min(hitIndex, hitsIn(matchIndex) - 1);
  showCount();
  if (!CSS.highlights) return;
  const now = ranges.get(matchIds[matchIndex])?.[hitIndex];
  const current = new Highlight(...(now ? [now] : []));
  current.priority = 1;
  CSS.highlights.set("found", new Highlight(...[...ranges.values()].flat()));
  CSS.highlights.set("found-now", current);
}

function clearMarks() {
  ranges = new Map();
  CSS.highlights?.delete("found");
  CSS.highlights?.delete("found-now");
}

/** A filter for a TreeWalker that skips elements that are not visible, and their content. */
function filterVisible(node) {
  if (node.nodeType === Node.TEXT_NODE) return NodeFilter.FILTER_ACCEPT;
  return node.matches(".sr-only, [hidden]") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
}

/** Returns the ranges of the matches in a message, which may span several text nodes. */
function rangesIn(message) {
  const query = field.value.trim().toLocaleLowerCase();
  const kinds = NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT;
  const walker = document.createTreeWalker(message.querySelector(".column") ?? message, kinds, filterVisible);
  const ranges = [];
  while (query && walker.nextNode()) {
    const text = walker.currentNode.data.toLocaleLowerCase();
    if (text.length !== walker.currentNode.data.length) continue; // positions would differ from those in the text
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
    clearTimeout(searchTimer);
    searchTimer = setTimeout(search, TYPING_PAUSE_MS);
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !isComposing(event)) closeFind();
    else if (event.key === "Enter" && event.target === field && !isComposing(event)) goToHit(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  panel.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button?.dataset.step) goToHit(Number(button.dataset.step));
    else if (button) closeFind();
  });
}
