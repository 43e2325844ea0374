// Notifies users who are not looking at the page: in the browser's tab, and by notifications if these are turned on.
// Also reports to the server how far the user has read.
import { distanceToEnd, NEAR_END_PX } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { notifyIfAway, rowsThatNeedUser, showTabTitle } from "../ui/notify.js";
import { canEdit, live, ownMentions, page, shownTitle } from "./session.js";

// The browser's tab shows the number of unread messages and waiting sessions, the title, and the state as an icon.

const icon = document.getElementById("favicon");
const tabState = { unread: 0, waiting: 0, working: false, offline: false };

/** Updates the browser's tab after changes of `tabState`, or of the session's title. */
export function showInTab(changes = {}) {
  Object.assign(tabState, changes);
  showTabTitle(`${shownTitle()} · Parley`, tabState.unread + tabState.waiting);
  const address = icon.href.replace(/favicon[\w-]*\.svg$/, `favicon${iconSuffix()}.svg`);
  if (icon.href !== address) icon.href = address;
}

/** Returns the suffix of an icon's name for the most important state. */
function iconSuffix() {
  if (tabState.offline) return "-offline";
  if (tabState.working) return "-working";
  return tabState.unread || tabState.waiting ? "-unread" : "";
}

// The end of a shorter turn causes no notification, and neither does a turn that was stopped. Push messages have the
// same rules.
const MIN_TURN_MS = 20_000;
let turnBegan = page.dataset.status === "idle" ? null : performance.now();
// How the turn ended: "failed", "stopped", or another text, from the last frame with `data-end`. A change of an older
// message sends one, too, but at the end of a turn, the frame of its own last message is the last one.
let turnEnd = "";

function handleStatus() {
  const { status } = page.dataset;
  const duration = turnBegan === null ? 0 : performance.now() - turnBegan;
  showInTab({ working: status !== "idle" && status !== "waiting" });
  if (status === "waiting") notifyQuestion();
  else if (status === "idle" && duration > MIN_TURN_MS && turnEnd !== "stopped")
    notifySession(turnEnd === "failed" ? words.agentFailed : words.agentDone);
  if (status !== "idle") turnBegan ??= performance.now();
  else [turnBegan, turnEnd] = [null, ""];
}

const QUESTION_DELAY_MS = 500;
let lastQuestion = ""; // the last question, with the id of its message

/** Shows a notification with the agent's question, once. Waits for the question if the status arrives first. */
function notifyQuestion(isLate = false) {
  if (!canEdit || page.dataset.status !== "waiting") return; // viewers cannot answer
  const question = [...document.querySelectorAll("#messages [data-asks]:not([data-waits=others])")].at(-1);
  if (!question && document.querySelector("#messages [data-asks]")) return; // the agent waits for other users
  if (!question)
    return isLate ? notifySession(words.agentWaits) : void setTimeout(notifyQuestion, QUESTION_DELAY_MS, true);
  const { asks } = question.dataset;
  const key = `${question.closest("article").id} ${asks}`;
  if (key !== lastQuestion) notifySession(asks);
  lastQuestion = key;
}

/** Shows a notification about this session. */
function notifySession(body) {
  notifyIfAway(shownTitle(), body, { session: page.dataset.session });
}

/** Shows in the tab how many sessions wait for the user, and how many other sessions mention the user. */
function updateWaitingCount() {
  const isCounted = ({ dataset }) => dataset.waiting === "yes" || dataset.session !== page.dataset.session;
  showInTab({ waiting: rowsThatNeedUser().filter(isCounted).length });
}

/** Returns the sequence number of the last message on the page. */
const lastSequence = () => Number([...document.querySelectorAll("#messages [data-sequence]")].at(-1)?.dataset.sequence);

/** Shows a notification about a new mention of the user. Ignores older messages and mentions that are already shown. */
function notifyMention({ op, id, sequence, html = "" }) {
  if (op !== "message" || !html.includes('class="mention"')) return;
  const fresh = new DOMParser().parseFromString(html, "text/html").querySelector("article");
  const shown = document.getElementById(id);
  if (!fresh || !ownMentions(fresh).length || (shown && ownMentions(shown).length)) return;
  if (!shown && sequence !== null && sequence <= lastSequence()) return;
  notifySession(format(words.mentionedBy, { name: fresh.querySelector(".who").textContent.trim() }));
}

export function connect() {
  connectReading();
  new MutationObserver(handleStatus).observe(page, { attributeFilter: ["data-status"] });
  document.addEventListener("parley:list-updated", updateWaitingCount);
  live.addEventListener("state", ({ detail: { state } }) =>
    showInTab({ offline: ["offline", "reconnecting", "closed"].includes(state) }),
  );
  showInTab({ working: turnBegan !== null && page.dataset.status !== "waiting" });
  updateWaitingCount();
}

// Unread messages: the page reports to the server how far the user has read, and counts messages while it is hidden.

const REPORT_INTERVAL_MS = 1_500;
const log = document.getElementById("log");
const unread = new Set();
let reportedRevision = -1;
let reportTimer = 0;
let isLooking = !document.hidden;

const isAtEnd = () => distanceToEnd(log) < NEAR_END_PX;

/** Reports messages as read if the user sees them: if the page is visible and scrolled to its end. */
function reportRead() {
  clearTimeout(reportTimer);
  reportTimer = 0;
  if (!isLooking || !isAtEnd() || live.state !== "connected") return;
  if (live.revision <= reportedRevision) return;
  reportedRevision = live.revision;
  // Repeated after the next message.
  live.request({ type: "read", revision: reportedRevision }).catch(() => (reportedRevision = -1));
}

function reportSoon() {
  if (isLooking) reportTimer ||= setTimeout(reportRead, REPORT_INTERVAL_MS);
}

function handleFrame({ detail: frame }) {
  reportSoon();
  notifyMention(frame);
  // The frame of the status follows. This also holds for messages that the page does not show, or has missed.
  turnEnd = frame.html?.match(/^<[^>]* data-end="(\w*)"/)?.[1] ?? turnEnd;
  if (document.hidden && isFinishedText(frame) && !unread.has(frame.id)) {
    unread.add(frame.id);
    showInTab({ unread: unread.size });
  }
}

/** Returns whether a frame contains a text of another user, or a finished text of the agent. */
function isFinishedText({ op, sequence, html = "" }) {
  if (op !== "message" || sequence === null) return false;
  const [tag] = html.match(/<article class="message (user|assistant|error)[^>]*>/) ?? [""];
  return (
    tag !== "" && !tag.includes('data-status="streaming"') && !tag.includes(`data-user-id="${page.dataset.viewerId}"`)
  );
}

function connectReading() {
  live.addEventListener("frame", handleFrame);
  log.addEventListener("scroll", reportSoon, { passive: true });
  addEventListener("pagehide", reportRead);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      reportRead(); // messages that arrived while the page was visible
      isLooking = false;
      return;
    }
    isLooking = true;
    unread.clear();
    showInTab({ unread: 0 });
    reportSoon();
  });
}
