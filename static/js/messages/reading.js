// Unread messages: reports to the server how far the user has read, and counts while the page is hidden.
import { live, page } from "./session.js";

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
  if (document.hidden && isSaid(frame) && !unread.has(frame.id)) {
    unread.add(frame.id);
    tell();
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

function tell() {
  document.dispatchEvent(new CustomEvent("parley:unread", { detail: { count: unread.size } }));
}

export function connect() {
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
    tell();
    soon();
  });
}
