// Applies frames to the page, in order, together once per animation frame.
import { parse, patchChildren } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { announce, over, say } from "../ui/notice.js";
import { adopt, isOver, remove, upsert } from "./list.js";
import { showInTab } from "./notifications.js";
import { keepPlace } from "./scroll.js";
import { page } from "./session.js";
import { Streams } from "./stream.js";

// Messages whose sequence numbers change because earlier ones were removed or restored.

/** Renumbers the messages from a place on, except those that were rendered after the change. */
function shift({ from, by, revision }) {
  for (const element of document.querySelectorAll("#messages > [data-sequence]")) {
    const place = Number(element.dataset.sequence);
    if (place < from || Number(element.dataset.revision) >= revision) continue;
    element.dataset.sequence = place + by;
    element.dataset.revision = revision;
  }
}

// Messages that were excluded from the context or included again, many at once.

const SAID = ".user, .assistant, .reasoning, .tool_group, .note";

/** Marks the messages in a range, except those that were rendered after the change. */
function include({ included, places, mark, revision }) {
  for (const element of document.querySelectorAll("#messages > [data-sequence]")) {
    const place = Number(element.dataset.sequence);
    if (!places.some(([first, last]) => first <= place && place <= last) || !element.matches(SAID)) continue;
    if (element.classList.contains("excluded") !== included || Number(element.dataset.revision) >= revision) continue;
    element.classList.toggle("excluded", !included);
    element.dataset.revision = revision;
    if (included) element.querySelector(".left-out")?.remove();
    else (element.querySelector(".meta") ?? element).prepend(parse(mark));
  }
}

// The parts of the page for the session itself: title, model, status, figures.

const stop = document.querySelector("[data-action=stop]");

/** Sets the HTML of all elements of a part. */
export function setPart(name, html) {
  for (const part of document.querySelectorAll(`[data-part="${CSS.escape(name)}"]`)) patchChildren(part, parse(html));
  if (name === "title") showInTab();
  if (name === "agent") showAgent();
}

function setSession({ parts, status, archived }) {
  for (const [name, html] of Object.entries(parts)) setPart(name, html);
  setStatus(status);
  page.dataset.archived = archived ? "yes" : "no";
}

function setWork({ html, status }) {
  setPart("status", html);
  setStatus(status);
}

/** Shows the agent's name, which is empty if there is only one agent. */
function showAgent() {
  const title = page.querySelector("[data-part=agent] bdi")?.textContent;
  if (title) page.dataset.agent = title;
}

/** Shows the agent's status. */
function setStatus(status) {
  const turned = (page.dataset.status === "idle") !== (status === "idle");
  page.dataset.status = status;
  if (stop) stop.disabled = status === "idle";
  if (status === "idle") over("agent");
  if (turned && status !== "idle") say(fill(words.isThinking, { name: page.dataset.agent || words.assistant }));
  if (turned) document.dispatchEvent(new CustomEvent("parley:rail", { detail: { now: true } }));
}

export const isIdle = () => page.dataset.status === "idle";

/** Shows the status at once on send; the server's status follows (UI-07). */
export function showThinking() {
  if (isIdle()) setPart("status", document.getElementById("thinking").innerHTML);
}

/** Shows that a request was refused. */
export function showIdleAgain() {
  if (isIdle()) setPart("status", "");
}

export class Inbox {
  #frames = [];
  #due = 0;
  #streams = new Streams();
  #missing;
  #overtaken;
  #queue;
  #doing = {
    snap: (frame) => this.#stream(frame),
    delta: (frame) => this.#stream(frame),
    message: (frame) => this.#show(frame),
    remove: (frame) => this.#remove(frame),
    shift,
    context: include,
    session: setSession,
    status: setWork,
    usage: ({ html }) => setPart("usage", html),
    cancelled: () => say(words.stopped),
    synced: (frame) => this.#synced(frame),
  };

  /**
   * `missing` is called when frames are missing; `overtaken` with the unsaved edit of a queued message that was delivered.
   * `queue` has the functions of queue.js that are called before a queued message leaves the page.
   */
  constructor({ missing, overtaken, queue }) {
    this.#missing = missing;
    this.#overtaken = overtaken;
    this.#queue = queue;
    document.addEventListener("visibilitychange", () => this.flush());
    document.addEventListener("htmx:after:settle", ({ detail }) => {
      const isOlder = detail.task.target.id === "messages";
      if (isOlder) adopt(detail.newContent.filter((node) => node.nodeType === Node.ELEMENT_NODE));
    });
  }

  put(frame) {
    this.#frames.push(frame);
    // Hidden pages get no animation frames.
    this.#due ||= document.hidden ? setTimeout(() => this.flush(), 250) : requestAnimationFrame(() => this.flush());
  }

  /** Returns the state of each streaming message. */
  have() {
    this.flush();
    return this.#streams.have();
  }

  flush() {
    this.#due = 0;
    if (!this.#frames.length) return;
    for (const frame of this.#frames.splice(0)) this.#doing[frame.op]?.(frame);
    this.#streams.flush();
    keepPlace();
  }

  #stream(frame) {
    if (!this.#streams.apply(frame)) this.#missing();
  }

  #remove({ id }) {
    this.#streams.forget(id);
    this.#queue.removed(document.getElementById(id));
    remove(id);
  }

  #synced({ streaming }) {
    if (streaming.some((id) => document.getElementById(id) && !this.#streams.knows(id))) this.#missing();
  }

  #show(frame) {
    const before = document.getElementById(frame.id);
    const wasOver = before !== null && isOver(before);
    const unsaved = frame.sequence === null ? "" : this.#queue.unsaved(before);
    const element = upsert(frame);
    if (element && isOver(element)) {
      this.#streams.forget(frame.id);
      if (!wasOver) announce(element);
    }
    const delivered = element?.querySelector(".plain")?.textContent;
    if (unsaved && unsaved !== delivered) this.#overtaken(unsaved);
  }
}
