// Summaries of earlier messages (CTX-07). What the last one stands for is folded away above it; a button shows it, dimmed.
import { textAt } from "../net/http.js";
import { offer, on } from "../ui/commands.js";
import { parse } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { notice } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { insist } from "./insist.js";
import { lacks } from "./list.js";
import { canEdit, live } from "./session.js";

const list = document.getElementById("messages");
const log = document.getElementById("log");
const NEAR = 40;
const BEYOND = 1e12; // no message has this place
let isOpen = false;
// The last summary that the model is sent, as {id, place, revision}: it may be among newer messages that are not loaded.
let last = null;
let end = null; // the end of the list that has said so
let made = null; // the last summary that came, as {id, text}
let shown = new WeakSet(); // what the list had before

/** Folds what comes before the last summary that the model is sent. Call it when messages came, changed or went. */
function fold() {
  readEnd();
  const summary = [...list.querySelectorAll(":scope > .summary:not(.excluded)")].at(-1);
  const place = Math.max(Number(summary?.dataset.sequence ?? 0), lacks("newer") ? (last?.place ?? 0) : 0);
  const isLoaded = place > 0 && place === Number(summary?.dataset.sequence);
  if (!place && !list.querySelector(":scope > .summarized")) return;
  let isBefore = place > 0;
  let isRead = false;
  for (const element of list.children) {
    if (Number(element.dataset.sequence) >= place) isBefore = false;
    isRead ||= isBefore && shown.has(element);
    element.classList.toggle("summarized", isBefore);
  }
  // What a user reads stays: the summary has come below it.
  if (isLoaded && isRead && !shown.has(summary) && !isAtEnd()) isOpen = true;
  log.classList.toggle("summary-folded", isLoaded && !isOpen);
  for (const button of list.querySelectorAll("[data-action=unfold-summary]"))
    button.setAttribute("aria-expanded", String(isOpen));
  shown = new WeakSet(list.children);
}

const isAtEnd = () => !lacks("newer") && log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;

/** Takes over what the end of the list says: it came with the newest of the messages that are loaded. */
function readEnd() {
  const newer = document.getElementById("newer");
  if (newer === end) return;
  end = newer;
  const { summary: id, summaryPlace } = newer.dataset;
  if (lacks("newer")) last = id ? { id, place: Number(summaryPlace), revision: 0 } : null;
}

/** Follows the summaries that come and go, the last one also while it is not loaded. */
function follow(frame) {
  if (frame.op === "message" && frame.html.includes("message summary")) {
    const summary = parse(frame.html).firstElementChild;
    const isSent = !summary.matches(".excluded");
    made = { id: frame.id, text: summary.querySelector(".summary-head > span").textContent.trim() };
    if (isSent && !(frame.sequence < last?.place))
      last = { id: frame.id, place: frame.sequence, revision: frame.revision };
    else if (!isSent && frame.id === last?.id) lookAgain();
  } else if (frame.op === "shift" && last?.place >= frame.from && last.revision < frame.revision) {
    Object.assign(last, { place: last.place + frame.by, revision: frame.revision });
  } else if (frame.op === "context" || (frame.op === "remove" && frame.id === last?.id)) {
    lookAgain();
  }
}

/** Asks which summary is the last one now. */
async function lookAgain() {
  if (!lacks("newer")) return;
  const html = await textAt(`${location.pathname}messages?after=${BEYOND}`);
  if (html === null) return;
  const { summary: id, summaryPlace } = parse(html).querySelector("#newer").dataset;
  last = id ? { id, place: Number(summaryPlace), revision: live.revision } : null;
  fold();
}

/** Shows a message that is folded away, for a user who goes to it. */
export function unfoldSummary(message) {
  if (!message?.matches(".summarized") || isOpen) return;
  isOpen = true;
  fold();
}

function toggle(button) {
  isOpen = !isOpen;
  const top = button.getBoundingClientRect().top;
  fold();
  log.scrollTop += button.getBoundingClientRect().top - top;
}

const compact = () => insist(() => live.request({ type: "compact" }), { label: words.stopAndCompact });

function undo(id) {
  const redo = { label: words.undo, run: () => insist(() => live.request({ type: "restore", id })) };
  return insist(
    async () => {
      await live.request({ type: "remove", id });
      toast(words.summaryRemoved, { action: redo });
    },
    { label: words.stopAndDo },
  );
}

/** Says how a compaction has ended: a summary says itself who has made it. */
function ended({ outcome, text }) {
  if (!text) return;
  const run = () => undo(made.id);
  if (outcome === "done") toast(made?.text ?? text, made && canEdit ? { action: { label: words.undo, run } } : {});
  else if (canEdit) notice(text, { about: "compact" });
}

export function connect() {
  list.style.setProperty("--replaced", JSON.stringify(words.replacedBySummary));
  new MutationObserver(fold).observe(list, { childList: true });
  live.addEventListener("frame", ({ detail }) => {
    if (!["message", "context", "shift", "remove"].includes(detail.op)) return;
    follow(detail);
    requestAnimationFrame(() => setTimeout(fold));
  });
  on("unfold-summary", toggle);
  on("undo-summary", (button) => undo(button.closest("article").id));
  on("compact", compact);
  live.addEventListener("frame", ({ detail }) => detail.op === "compacted" && ended(detail));
  offer({
    id: "compact",
    label: words.compact,
    words: words.compactWords,
    icon: "fold-vertical",
    slash: "compact",
    run: compact,
    can: () => canEdit,
  });
  fold();
}
