// Summaries of earlier messages (CTX-07). Messages before the last summary are folded, and dimmed when a button unfolds
// them.
import { fetchText } from "../net/http.js";
import { addCommand, onAction } from "../ui/commands.js";
import { distanceToEnd, NEAR_END_PX, parseHtml } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { showNotice } from "../ui/notice.js";
import { showToast } from "../ui/toast.js";
import { hasUnloaded } from "./list.js";
import { tryRequest } from "./requests.js";
import { canEdit, live } from "./session.js";

const list = document.getElementById("messages");
const log = document.getElementById("log");
const AFTER_ALL = 1e12; // a place beyond all messages
let isUnfolded = false;
// The last summary that is sent to the model, as {id, place, revision}. It may not be loaded.
let lastSummary = null;
let readElement = null; // the element at the end of the list from which `lastSummary` was read
let newSummary = null; // the last summary that has arrived, as {id, text}
let knownElements = new WeakSet(); // the elements of the list at the last call of `foldSummarized`

/** Folds the messages before the last summary that is sent to the model. Call it when messages have changed. */
function foldSummarized() {
  readLastSummary();
  const summary = [...list.querySelectorAll(":scope > .summary:not(.excluded)")].at(-1);
  const place = Math.max(Number(summary?.dataset.sequence ?? 0), hasUnloaded("newer") ? (lastSummary?.place ?? 0) : 0);
  const isLoaded = place > 0 && place === Number(summary?.dataset.sequence);
  if (!place && !list.querySelector(":scope > .summarized")) return;
  let isBefore = place > 0;
  let isRead = false;
  let day = null;
  for (const element of list.children) {
    if (element.matches(".day")) day = element;
    if (Number(element.dataset.sequence) >= place) isBefore = false;
    if (!isBefore) day?.classList.remove("summarized"); // the day of this message, which is shown
    isRead ||= isBefore && knownElements.has(element);
    element.classList.toggle("summarized", isBefore);
  }
  // A new summary does not fold messages that the user may be reading.
  if (isLoaded && isRead && !knownElements.has(summary) && !isAtEnd()) isUnfolded = true;
  log.classList.toggle("summary-folded", isLoaded && !isUnfolded);
  for (const button of list.querySelectorAll("[data-action=unfold-summary]"))
    button.setAttribute("aria-expanded", String(isUnfolded));
  knownElements = new WeakSet(list.children);
}

const isAtEnd = () => !hasUnloaded("newer") && distanceToEnd(log) < NEAR_END_PX;

/** Reads the last summary from #newer, the end of the list, which is rendered with the newest loaded messages. */
function readLastSummary() {
  const newer = document.getElementById("newer");
  if (newer === readElement) return;
  readElement = newer;
  const { summary: id, summaryPlace } = newer.dataset;
  if (hasUnloaded("newer")) lastSummary = id ? { id, place: Number(summaryPlace), revision: 0 } : null;
}

/** Updates `lastSummary` when summaries are added, moved or removed, even if the last one is not loaded. */
function handleFrame(frame) {
  if (frame.op === "message" && frame.html.includes("message summary")) {
    const summary = parseHtml(frame.html).firstElementChild;
    const isSent = !summary.matches(".excluded");
    newSummary = { id: frame.id, text: summary.querySelector(".summary-head > span").textContent.trim() };
    if (isSent && !(frame.sequence < lastSummary?.place))
      lastSummary = { id: frame.id, place: frame.sequence, revision: frame.revision };
    else if (!isSent && frame.id === lastSummary?.id) fetchLastSummary();
  } else if (frame.op === "shift" && lastSummary?.place >= frame.from && lastSummary.revision < frame.revision) {
    lastSummary = { ...lastSummary, place: lastSummary.place + frame.by, revision: frame.revision };
  } else if (frame.op === "context" || (frame.op === "remove" && frame.id === lastSummary?.id)) {
    fetchLastSummary();
  }
}

/** Fetches the last summary from the server. */
async function fetchLastSummary() {
  if (!hasUnloaded("newer")) return;
  const before = lastSummary;
  const html = await fetchText(`${location.pathname}messages?after=${AFTER_ALL}`);
  if (html === null) return;
  if (lastSummary !== before) return fetchLastSummary(); // the response may be older
  const { summary: id, summaryPlace } = parseHtml(html).querySelector("#newer").dataset;
  lastSummary = id ? { id, place: Number(summaryPlace), revision: live.revision } : null;
  foldSummarized();
}

/** Shows a folded message to which the user goes. */
export function unfoldSummary(message) {
  if (!message?.matches(".summarized") || isUnfolded) return;
  isUnfolded = true;
  foldSummarized();
}

function toggleFolding(button) {
  isUnfolded = !isUnfolded;
  const top = button.getBoundingClientRect().top;
  foldSummarized();
  log.scrollTop += button.getBoundingClientRect().top - top;
}

const compact = () => tryRequest(() => live.request({ type: "compact" }), { label: words.stopAndCompact });

function removeSummary(id) {
  const redo = { label: words.undo, run: () => tryRequest(() => live.request({ type: "restore", id })) };
  return tryRequest(
    async () => {
      await live.request({ type: "remove", id });
      showToast(words.summaryRemoved, { action: redo });
    },
    { label: words.stopAndDo },
  );
}

/** Shows the result of a compaction. */
function showResult({ outcome, text }) {
  if (!text) return;
  const run = () => removeSummary(newSummary.id);
  if (outcome === "done")
    showToast(newSummary?.text ?? text, newSummary && canEdit ? { action: { label: words.undo, run } } : {});
  else if (canEdit) showNotice(text, { about: "compact" });
}

export function connect() {
  list.style.setProperty("--replaced", JSON.stringify(words.replacedBySummary));
  new MutationObserver(foldSummarized).observe(list, { childList: true });
  live.addEventListener("frame", ({ detail }) => {
    if (!["message", "context", "shift", "remove"].includes(detail.op)) return;
    handleFrame(detail);
    requestAnimationFrame(() => setTimeout(foldSummarized));
  });
  onAction("unfold-summary", toggleFolding);
  onAction("undo-summary", (button) => removeSummary(button.closest("article").id));
  onAction("compact", compact);
  live.addEventListener("frame", ({ detail }) => detail.op === "compacted" && showResult(detail));
  addCommand({
    id: "compact",
    label: words.compact,
    keywords: words.compactWords,
    icon: "fold-vertical",
    slash: "compact",
    run: compact,
    can: () => canEdit,
  });
  foldSummarized();
}
