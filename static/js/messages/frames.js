// Applies frames to the page in order. All frames that arrive within one animation frame are applied together.
import { TOUCH } from "../ui/commands.js";
import { createElement, parseHtml, patchChildren } from "../ui/dom.js";
import { setAgentIcons } from "../ui/faces.js";
import { format, words } from "../ui/i18n.js";
import { announce, announceMessage, clearNotice } from "../ui/notice.js";
import { isFinished, prepareRendered, removeMessage, upsertMessage } from "./list.js";
import { showInTab } from "./notifications.js";
import { keepScrollPosition } from "./scroll.js";
import { live, page, shownTitle } from "./session.js";

// Messages whose sequence numbers change because earlier ones were removed or restored.

/** Adds `by` to the sequence numbers from `from` on, except in messages that were rendered after the change. */
function renumber({ from, by, revision }) {
  for (const element of document.querySelectorAll("#messages > [data-sequence]")) {
    const sequence = Number(element.dataset.sequence);
    if (sequence < from || Number(element.dataset.revision) >= revision) continue;
    element.dataset.sequence = sequence + by;
    element.dataset.revision = revision;
  }
}

// Messages that one command has excluded from the context or included again.

const CONTEXT_MESSAGES = ".user, .assistant, .reasoning, .tool_group, .note, .summary";

/** Marks the messages in these ranges as included or excluded, except those that were rendered after the change. */
function markIncluded({ included, places, mark, revision }) {
  for (const element of document.querySelectorAll("#messages > [data-sequence]")) {
    const sequence = Number(element.dataset.sequence);
    if (!places.some(([first, last]) => first <= sequence && sequence <= last) || !element.matches(CONTEXT_MESSAGES))
      continue;
    if (element.classList.contains("excluded") !== included || Number(element.dataset.revision) >= revision) continue;
    element.classList.toggle("excluded", !included);
    element.dataset.revision = revision;
    if (included) element.querySelector(".excluded-mark")?.remove();
    else (element.querySelector(".meta") ?? element).prepend(parseHtml(mark));
  }
}

// The parts of the page about the session itself: title, model, status, figures.

const stopButtons = document.querySelectorAll("[data-action=stop]");

/** Sets the HTML of all elements of a part. */
export function setPart(name, html) {
  for (const part of document.querySelectorAll(`[data-part="${CSS.escape(name)}"]`))
    patchChildren(part, parseHtml(html));
  if (name === "title") showInTab();
  if (name === "agent") updateAgentName();
}

function updateSession({ parts, status, archived, archiver, replies, automatic, mode, agents, icons }) {
  const titleBefore = shownTitle();
  for (const [name, html] of Object.entries(parts)) setPart(name, html);
  if (shownTitle() !== titleBefore) reportListChange();
  setStatus(status);
  page.dataset.archiver = archiver ?? "";
  page.dataset.archived = archived ? "yes" : "no";
  if (automatic && page.dataset.replies !== replies)
    page.dispatchEvent(new CustomEvent("parley:replies", { detail: replies }));
  page.dataset.replies = replies;
  page.dataset.mode = mode;
  page.dataset.agents = JSON.stringify(agents);
  setAgentIcons(icons);
  page.dispatchEvent(new Event("parley:session-changed"));
}

/** Reports a change of the session list. The server also does, but perhaps before the page shows the new state. */
function reportListChange(more) {
  document.dispatchEvent(new CustomEvent("parley:list-changed", { detail: { own: true, ...more } }));
}

function updateStatus({ html, status }) {
  setPart("status", html);
  setStatus(status);
  const asked = page.querySelector("#status .asked"); // another agent waits for the user
  if (asked) announce(asked.innerText);
}

/** Stores the agent's name, unless the part has none. */
function updateAgentName() {
  const title = page.querySelector("[data-part=agent] bdi")?.textContent;
  if (title) page.dataset.agent = title;
}

/** Shows the agent's status. */
function setStatus(status) {
  const before = page.dataset.status;
  const isTurnChange = (before === "idle") !== (status === "idle");
  page.dataset.status = status;
  // Stop is hidden next, so the focus moves to the field. Not on phones, where that would open the keyboard.
  const isLost = status === "idle" && [...stopButtons].includes(document.activeElement);
  if (isLost && page.dataset.archived === "yes") page.focus({ preventScroll: true });
  else if (isLost && !TOUCH.matches) document.getElementById("text").focus();
  for (const button of stopButtons) button.disabled = status === "idle";
  if (status === "idle") for (const about of ["agent", "cancel"]) clearNotice(about);
  if (isTurnChange && status !== "idle")
    announce(format(words.isThinking, { name: page.dataset.agent || words.assistant }));
  if (isTurnChange || (before === "waiting") !== (status === "waiting")) reportListChange({ now: isTurnChange });
}

export const isIdle = () => page.dataset.status === "idle";

/** Shows that the agent is thinking as soon as the user sends a message, before the server reports it (UI-07). */
export function showThinking() {
  if (isIdle()) setPart("status", document.getElementById("thinking").innerHTML);
}

/** Removes this status if the message was refused or starts no turn. */
export function showIdleAgain() {
  if (isIdle()) setPart("status", "");
}

/** Returns whether the last message is a text that an agent is writing. */
function isAgentWriting() {
  const last = document.getElementById("messages").lastElementChild;
  return Boolean(last?.matches(".assistant[data-status=streaming]") && last.querySelector("[data-body] > * > *"));
}

// Frames that can change the heights of messages above those in view.
const RESIZING_FRAMES = ["message", "remove", "context"];

export class FrameQueue {
  #frames = [];
  #due = 0;
  #removedOwn = new Set(); // ids of the user's own messages that the current frames remove
  #streams = new StreamingTexts();
  #onMissing;
  #onDelivered;
  #queue;
  #handlers = {
    snap: (frame) => this.#applyText(frame),
    delta: (frame) => this.#applyText(frame),
    message: (frame) => this.#showMessage(frame),
    remove: (frame) => this.#removeMessage(frame),
    shift: renumber,
    context: markIncluded,
    session: updateSession,
    status: updateStatus,
    usage: ({ html, bar }) => {
      setPart("usage", html);
      setPart("context_bar", bar);
    },
    cancelled: () => announce(words.stopped),
    synced: (frame) => this.#checkStreams(frame),
  };

  /**
   * `onMissing` is called when frames are missing. `onDelivered` is called with the unsaved edit of a queued message
   * that was delivered. `queue` is the module composer/queue.js. This folder may not import from composer/.
   */
  constructor({ onMissing, onDelivered, queue }) {
    this.#onMissing = onMissing;
    this.#onDelivered = onDelivered;
    this.#queue = queue;
    document.addEventListener("visibilitychange", () => this.flush());
    document.addEventListener("htmx:after:settle", ({ detail }) => {
      const isOlder = detail.task.target.id === "messages";
      if (isOlder) prepareRendered(detail.newContent.filter((node) => node.nodeType === Node.ELEMENT_NODE));
    });
  }

  enqueue(frame) {
    this.#frames.push(frame);
    // Hidden pages get no animation frames.
    this.#due ||= document.hidden ? setTimeout(() => this.flush(), 250) : requestAnimationFrame(() => this.flush());
  }

  /** Returns the page's state of each streaming message, in the form of a sync request. */
  streamStates() {
    this.flush();
    return this.#streams.streamStates();
  }

  flush() {
    this.#due = 0;
    if (!this.#frames.length) return;
    this.#removedOwn.clear();
    const moves = this.#frames.some(({ op }) => RESIZING_FRAMES.includes(op));
    keepScrollPosition(() => this.#apply(this.#frames.splice(0)), { moves });
    const count = [...this.#removedOwn].filter((id) => !document.getElementById(id)).length;
    if (count && !live.isRemoving) page.dispatchEvent(new CustomEvent("parley:messages-removed", { detail: count }));
  }

  #apply(frames) {
    for (const frame of frames) this.#handle(frame);
    this.#streams.flush();
    document.getElementById("status").toggleAttribute("data-writing", isAgentWriting());
  }

  /** Applies a frame. An error in one frame does not keep the others from being applied. */
  #handle(frame) {
    try {
      this.#handlers[frame.op ?? "delta"]?.(frame);
    } catch (error) {
      reportError(error);
    }
  }

  #applyText(frame) {
    if (!this.#streams.apply(frame)) this.#onMissing();
  }

  #removeMessage({ id }) {
    this.#streams.forget(id);
    const element = document.getElementById(id);
    if (element?.matches("#messages > .mine")) this.#removedOwn.add(id);
    this.#queue.offerRemovedText(element);
    removeMessage(id);
  }

  #checkStreams({ streaming }) {
    if (streaming.some((id) => document.getElementById(id) && !this.#streams.knows(id))) this.#onMissing();
  }

  #showMessage(frame) {
    const before = document.getElementById(frame.id);
    const wasOver = before !== null && isFinished(before);
    const unsaved = frame.sequence === null ? "" : this.#queue.unsavedEdit(before);
    const element = upsertMessage(frame);
    if (element && isFinished(element)) {
      this.#streams.forget(frame.id);
      if (!wasOver) announceMessage(element);
    }
    const delivered = element?.querySelector(".plain")?.textContent;
    if (unsaved && unsaved !== delivered) this.#onDelivered(unsaved);
  }
}

// The text of streaming messages. Finished blocks stay unchanged, and the unfinished tail is patched.

export class StreamingTexts {
  #states = new Map();
  #dirty = new Set();

  /**
   * Returns the page's state of each streaming message, in the form of a sync request. Messages that were rendered with
   * the page or with a part of the list have the state 0, so that the server sends their whole text.
   */
  streamStates() {
    for (const [id, { body }] of [...this.#states]) if (findBody(id) !== body) this.forget(id);
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

  /** Applies a snap, delta or short delta frame. Returns false if earlier frames are missing. */
  apply(textFrame) {
    const frame = Array.isArray(textFrame) ? this.#expandShortFrame(textFrame) : textFrame;
    const body = findBody(frame.id);
    if (!body) return true; // the message is not on the page yet; its message frame or a sync will contain the text
    // The element is new: another part of the session was loaded. Its text is from the rows, and older than the stream.
    if (this.#states.has(frame.id) && this.#states.get(frame.id).body !== body) this.forget(frame.id);
    const state = this.#states.get(frame.id);
    if (frame.op === "snap") return this.#applySnapshot(frame, body, state);
    if (!state) return false;
    if (frame.n <= state.n) return true;
    if (frame.n > state.n + 1) return false;
    this.#applyDelta(frame, body, state);
    return true;
  }

  /** Draws the tails that changed since the last call. */
  flush() {
    for (const id of this.#dirty) {
      const state = this.#states.get(id);
      if (state && state.body === findBody(id)) patchChildren(tailElement(state.body), parseHtml(state.tail));
    }
    this.#dirty.clear();
  }

  /** Applies a snap, which replaces the whole text and restarts the numbering of its frames. */
  #applySnapshot(frame, body, state) {
    if (frame.from > (state?.blocks ?? 0)) return this.#forgetIncomplete(frame.id);
    replaceBlocks(body, frame.from, frame.blocks);
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

  /** Returns a short frame as a delta frame. The id of its message is "" if the page does not show the message. */
  #expandShortFrame([end, n, stays, replaced, text, blocks, replace]) {
    const isEnd = (id) => id.endsWith(end);
    const id = [...this.#states.keys()].find(isEnd) ?? document.querySelector(`#messages > [id$="${end}"]`)?.id;
    return { op: "delta", id: id ?? "", n, short: { stays, replaced, text }, blocks, replace };
  }

  #applyDelta(frame, body, state) {
    for (const html of frame.blocks ?? [])
      finishTail(body, typeof html === "string" ? html : splice(state.tail, ...html));
    state.blocks += frame.blocks?.length ?? 0;
    for (const [index, html] of frame.replace ?? []) {
      patchChildren(body.children[index], parseHtml(html));
      state.rev += 1;
    }
    state.n = frame.n;
    if (frame.short) {
      const { stays, replaced, text } = frame.short;
      state.tail = splice(state.tail, state.tail.length - stays - replaced, stays, text);
    } else state.tail = state.tail.slice(0, frame.keep ?? 0) + (frame.tail ?? "");
    this.#dirty.add(frame.id);
  }

  #forgetIncomplete(id) {
    this.forget(id);
    return false;
  }
}

const findBody = (id) => document.getElementById(id)?.querySelector("[data-body]");

/** Returns the first `start` and the last `end` characters of a text, with the text `between` between them. */
const splice = (text, start, end, between) => text.slice(0, start) + between + text.slice(text.length - end);

/** Makes the tail a finished block. It stays the same element, so that the focus, selections and images stay. */
function finishTail(body, html) {
  const tail = tailElement(body);
  tail.className = "block";
  patchChildren(tail, parseHtml(html));
}

/** Replaces the blocks from an index on. Equal blocks are left unchanged. */
function replaceBlocks(body, from, blocks) {
  blocks.forEach((html, offset) => {
    const present = body.children[from + offset];
    if (present?.className === "block") patchChildren(present, parseHtml(html));
    else finishTail(body, html);
  });
  const tail = tailElement(body);
  while (body.children[from + blocks.length] !== tail) body.children[from + blocks.length].remove();
}

function tailElement(body) {
  const last = body.lastElementChild;
  if (last?.className === "tail") return last;
  return body.appendChild(createElement("div", { className: "tail", dir: "auto" }));
}
