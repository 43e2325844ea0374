// Applies frames to the page, in order, together once per animation frame; also those of streaming texts.
import { TOUCH } from "../ui/commands.js";
import { make, parse, patchChildren } from "../ui/dom.js";
import { knowIcons } from "../ui/faces.js";
import { fill, words } from "../ui/i18n.js";
import { announce, over, say } from "../ui/notice.js";
import { adopt, isOver, remove, upsert } from "./list.js";
import { showInTab } from "./notifications.js";
import { keepPlace } from "./scroll.js";
import { live, page } from "./session.js";

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

const shownTitle = () => page.querySelector("[data-part=title]").textContent;

function setSession({ parts, status, archived, archiver, replies, automatic, mode, agents, icons }) {
  const titleBefore = shownTitle();
  for (const [name, html] of Object.entries(parts)) setPart(name, html);
  if (shownTitle() !== titleBefore) tellList();
  setStatus(status);
  page.dataset.archiver = archiver ?? "";
  page.dataset.archived = archived ? "yes" : "no";
  if (automatic && page.dataset.replies !== replies)
    page.dispatchEvent(new CustomEvent("parley:replies", { detail: replies }));
  page.dataset.replies = replies;
  page.dataset.mode = mode;
  page.dataset.agents = JSON.stringify(agents);
  knowIcons(icons);
  page.dispatchEvent(new Event("parley:changed"));
}

/** The notice that the list has changed may come before the page knows what has. */
function tellList(more) {
  document.dispatchEvent(new CustomEvent("parley:rail", { detail: { own: true, ...more } }));
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
  const before = page.dataset.status;
  const turned = (before === "idle") !== (status === "idle");
  page.dataset.status = status;
  // Stop is about to be hidden. On phones a focus in the field would open the keyboard.
  if (status === "idle" && document.activeElement === stop && !TOUCH.matches) document.getElementById("text").focus();
  if (stop) stop.disabled = status === "idle";
  if (status === "idle") over("agent");
  if (turned && status !== "idle") say(fill(words.isThinking, { name: page.dataset.agent || words.assistant }));
  if (turned || (before === "waiting") !== (status === "waiting")) tellList({ now: turned });
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

/** Whether the end of the list is the text that an agent is writing. */
function isWriting() {
  const last = document.getElementById("messages").lastElementChild;
  return Boolean(last?.matches(".assistant[data-status=streaming]") && last.querySelector("[data-body] > * > *"));
}

// What can change the heights of messages above those in view.
const MOVES = ["message", "remove", "context"];

export class Inbox {
  #frames = [];
  #due = 0;
  #lost = new Set(); // ids of the user's own messages that the current frames remove
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
    usage: ({ html, bar }) => {
      setPart("usage", html);
      setPart("context_bar", bar);
    },
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
    this.#lost.clear();
    const moves = this.#frames.some(({ op }) => MOVES.includes(op));
    keepPlace(() => this.#apply(this.#frames.splice(0)), { moves });
    const count = [...this.#lost].filter((id) => !document.getElementById(id)).length;
    if (count && !live.isRemoving) page.dispatchEvent(new CustomEvent("parley:lost", { detail: count }));
  }

  #apply(frames) {
    for (const frame of frames) this.#doing[frame.op ?? "delta"]?.(frame);
    this.#streams.flush();
    document.getElementById("status").toggleAttribute("data-writing", isWriting());
  }

  #stream(frame) {
    if (!this.#streams.apply(frame)) this.#missing();
  }

  #remove({ id }) {
    this.#streams.forget(id);
    const element = document.getElementById(id);
    if (element?.matches("#messages > .mine")) this.#lost.add(id);
    this.#queue.removed(element);
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

// The text of streaming messages: finished blocks stay, the unfinished tail is patched.

export class Streams {
  #states = new Map();
  #dirty = new Set();

  /**
   * Returns the page's state of each streaming message, in the form of a sync request. Of those that were rendered with
   * the page, or with a part of the list, nothing is known.
   */
  have() {
    for (const [id, { body }] of [...this.#states]) if (bodyOf(id) !== body) this.forget(id);
    const known = [...this.#states].map(([id, { blocks, rev }]) => [id, { blocks, rev }]);
    const shown = [...document.querySelectorAll("#messages > [data-status=streaming]")];
    return Object.fromEntries([...shown.map(({ id }) => [id, { blocks: 0, rev: 0 }]), ...known]);
  }

  knows(id) {
    return this.#states.has(id);
  }

  forget(id) {
    this.#states.delete(id);
    this.#dirty.delete(id);
  }

  /** Applies a snap or delta frame, or a short one; returns false if earlier frames are missing. */
  apply(given) {
    const frame = Array.isArray(given) ? this.#named(given) : given;
    const body = bodyOf(frame.id);
    if (!body) return true; // not on this page yet: its message frame or a sync will bring it
    // Another element came with a part of the list, which was read from the rows: they are a moment behind.
    if (this.#states.has(frame.id) && this.#states.get(frame.id).body !== body) this.forget(frame.id);
    const state = this.#states.get(frame.id);
    if (frame.op === "snap") return this.#snap(frame, body, state);
    if (!state) return false;
    if (frame.n <= state.n) return true;
    if (frame.n > state.n + 1) return false;
    this.#delta(frame, body, state);
    return true;
  }

  /** Draws the tails that changed since the last call. */
  flush() {
    for (const id of this.#dirty) {
      const state = this.#states.get(id);
      if (state && state.body === bodyOf(id)) patchChildren(tailOf(state.body), parse(state.tail));
    }
    this.#dirty.clear();
  }

  /** Applies a snap, which replaces the whole text and restarts the numbering of its frames. */
  #snap(frame, body, state) {
    if (frame.from > (state?.blocks ?? 0)) return this.#drop(frame.id);
    place(body, frame.from, frame.blocks);
    this.#states.set(frame.id, {
      body,
      n: frame.n,
      rev: frame.rev,
      blocks: frame.from + frame.blocks.length,
      tail: frame.tail,
    });
    this.#dirty.add(frame.id);
    return true;
  }

  /** Returns a short frame with the id of its message; of an unknown message it has none. */
  #named([end, n, stays, replaced, text, blocks, replace]) {
    const isMeant = (id) => id.endsWith(end);
    const id = [...this.#states.keys()].find(isMeant) ?? document.querySelector(`#messages > [id$="${end}"]`)?.id;
    return { op: "delta", id: id ?? "", n, short: { stays, replaced, text }, blocks, replace };
  }

  #delta(frame, body, state) {
    const tail = tailOf(body);
    for (const html of frame.blocks ?? [])
      tail.before(block(typeof html === "string" ? html : spliced(state.tail, ...html)));
    state.blocks += frame.blocks?.length ?? 0;
    for (const [index, html] of frame.replace ?? []) {
      patchChildren(body.children[index], parse(html));
      state.rev += 1;
    }
    state.n = frame.n;
    if (frame.short) {
      const { stays, replaced, text } = frame.short;
      state.tail = spliced(state.tail, state.tail.length - stays - replaced, stays, text);
    } else state.tail = state.tail.slice(0, frame.keep ?? 0) + (frame.tail ?? "");
    this.#dirty.add(frame.id);
  }

  #drop(id) {
    this.forget(id);
    return false;
  }
}

const bodyOf = (id) => document.getElementById(id)?.querySelector("[data-body]");

/** Returns a text with something else between its start and its end. */
const spliced = (text, start, end, between) => text.slice(0, start) + between + text.slice(text.length - end);

const block = (html) => make("div", { className: "block", dir: "auto" }, parse(html));

/** Replaces the blocks from an index on; equal ones are left alone. */
function place(body, from, blocks) {
  const tail = tailOf(body);
  blocks.forEach((html, offset) => {
    const present = body.children[from + offset];
    const fresh = block(html);
    if (present === tail) tail.before(fresh);
    else if (!present.isEqualNode(fresh)) patchChildren(present, fresh);
  });
  while (body.children[from + blocks.length] !== tail) body.children[from + blocks.length].remove();
}

function tailOf(body) {
  const last = body.lastElementChild;
  if (last?.className === "tail") return last;
  return body.appendChild(make("div", { className: "tail", dir: "auto" }));
}
