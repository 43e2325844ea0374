// Notifies a user who looks elsewhere, by the tab and, if wanted, by the browser; and reports how far the user has read.
import { fill, words } from "../ui/i18n.js";
import { notifyElsewhere } from "../ui/notify.js";
import { live, ownMentions, page } from "./session.js";

// The browser's tab: the counts of unread messages and of sessions that wait, the title, and the state as an icon.

const icon = document.getElementById("favicon");
const now = { unread: 0, waiting: 0, working: false, offline: false };

/** Updates the tab with changed values ({unread}, {waiting}, {working}, {offline}); without any, updates the title. */
export function showInTab(changes = {}) {
  Object.assign(now, changes);
  const title = page.querySelector("[data-part=title]").textContent.trim();
  const count = now.unread + now.waiting;
  document.title = `${count ? `(${count}) ` : ""}${title} · Parley`;
  const address = icon.href.replace(/favicon[\w-]*\.svg$/, `favicon${state()}.svg`);
  if (icon.href !== address) icon.href = address;
}

/** Returns the most important state, as the end of an icon's name. */
function state() {
  if (now.offline) return "-offline";
  if (now.working) return "-working";
  return now.unread || now.waiting ? "-unread" : "";
}

// "Idle" also follows Stop and errors. Shorter turns are not worth a notification.
const TELL_AFTER_MS = 20_000;
let began = page.dataset.status === "idle" ? null : performance.now();

function turned() {
  const { status } = page.dataset;
  const took = began === null ? 0 : performance.now() - began;
  showInTab({ working: status !== "idle" && status !== "waiting" });
  if (status === "waiting") tellWaiting();
  else if (status === "idle" && took > TELL_AFTER_MS) tell(words.agentDone);
  if (status === "idle") began = null;
  else began ??= performance.now();
}

const ASKED_WITHIN_MS = 500;
let lastAsked = ""; // the last question, with the id of its message

/** Notifies of what the agent asks, once: the message with it may follow the status, which is set again and again. */
function tellWaiting(isLate = false) {
  if (page.dataset.status !== "waiting") return;
  const question = [...document.querySelectorAll("#messages [data-asks]:not([data-mine=yes])")].at(-1);
  if (!question && document.querySelector("#messages [data-asks]")) return; // it waits for others
  if (!question) return isLate ? tell(words.agentWaits) : void setTimeout(tellWaiting, ASKED_WITHIN_MS, true);
  const { asks } = question.dataset;
  const key = `${question.closest("article").id} ${asks}`;
  if (key !== lastAsked) tell(asks);
  lastAsked = key;
}

/** Notifies of this session. */
function tell(body) {
  const title = page.querySelector("[data-part=title]").textContent.trim();
  notifyElsewhere(title, body, { session: page.dataset.session });
}

/** Counts the sessions that wait for this user, and the others that mention them, in the list of sessions. */
function countWaiting() {
  const rows = [...document.querySelectorAll("#rail-list :is([data-waiting=yes], [data-mentioned=yes])")];
  const isCounted = ({ dataset }) => dataset.waiting === "yes" || dataset.session !== page.dataset.session;
  showInTab({ waiting: rows.filter(isCounted).length });
}

/** The sequence number of the last message on the page. */
const lastSequence = () => Number([...document.querySelectorAll("#messages [data-sequence]")].at(-1)?.dataset.sequence);

/** Notifies of a message that mentions the user, unless the page has it already or it is an older one that changed. */
function tellMention({ op, id, sequence, html = "" }) {
  if (op !== "message" || !html.includes('class="mention"')) return;
  const fresh = new DOMParser().parseFromString(html, "text/html").querySelector("article");
  const shown = document.getElementById(id);
  if (!fresh || !ownMentions(fresh).length || (shown && ownMentions(shown).length)) return;
  if (!shown && sequence !== null && sequence <= lastSequence()) return;
  tell(fill(words.mentionedBy, { name: fresh.querySelector(".who").textContent.trim() }));
}

export function connect() {
  connectReading();
  new MutationObserver(turned).observe(page, { attributeFilter: ["data-status"] });
  document.addEventListener("parley:listed", countWaiting);
  live.addEventListener("state", ({ detail: { state } }) =>
    showInTab({ offline: ["offline", "reconnecting", "closed"].includes(state) }),
  );
  showInTab({ working: began !== null && page.dataset.status !== "waiting" });
  countWaiting();
}

// Unread messages: reports to the server how far the user has read, and counts while the page is hidden.

const EVERY = 1_500;
const NEAR = 40;
const log = document.getElementById("log");
const unread = new Set();
let told = -1;
let timer = 0;
let looking = !document.hidden;

const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;

/** Counts as read only what the user sees: the page is visible and at its end. */
function look() {
  clearTimeout(timer);
  timer = 0;
  if (!looking || !atEnd() || live.state !== "connected") return;
  if (live.revision <= told) return;
  told = live.revision;
  live.request({ type: "read", revision: told }).catch(() => (told = -1)); // repeated after the next message
}

function soon() {
  if (looking) timer ||= setTimeout(look, EVERY);
}

function heard({ detail: frame }) {
  soon();
  tellMention(frame);
  if (document.hidden && isSaid(frame) && !unread.has(frame.id)) {
    unread.add(frame.id);
    showInTab({ unread: unread.size });
  }
}

/** Whether a frame brings another author's text: a person's, or a finished one of the agent. */
function isSaid({ op, sequence, html = "" }) {
  if (op !== "message" || sequence === null) return false;
  const [tag] = html.match(/<article class="message (user|assistant|error)[^>]*>/) ?? [""];
  return (
    tag !== "" && !tag.includes('data-status="streaming"') && !tag.includes(`data-user-id="${page.dataset.viewerId}"`)
  );
}

function connectReading() {
  live.addEventListener("frame", heard);
  log.addEventListener("scroll", soon, { passive: true });
  addEventListener("pagehide", look);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      look(); // messages that arrived while the page was visible
      looking = false;
      return;
    }
    looking = true;
    unread.clear();
    showInTab({ unread: 0 });
    soon();
  });
}
