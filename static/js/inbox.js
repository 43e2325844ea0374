// Frames on their way into the page: drawn together once per animation frame, in their order.
import { include } from "./including.js";
import { adopt, isOver, remove, upsert } from "./messages.js";
import { announce, say } from "./notice.js";
import { page } from "./page.js";
import { setPart, setParts, setStatus } from "./parts.js";
import { keepPlace } from "./scroll.js";
import { shift } from "./shift.js";
import { Streams } from "./stream.js";
import { words } from "./words.js";

export class Inbox {
  #frames = [];
  #due = 0;
  #streams = new Streams();
  #missing;
  #overtaken;
  #queue;

  /**
   * `missing` is called when frames are lacking; `overtaken` with what a sender was making of a message just delivered.
   * `queue` has the functions of queue.js that are asked before a message of the queue goes.
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

  /** What this page has of each streaming message. */
  have() {
    this.flush();
    return this.#streams.have();
  }

  flush() {
    this.#due = 0;
    if (!this.#frames.length) return;
    for (const frame of this.#frames.splice(0)) this.#apply(frame);
    this.#streams.flush();
    keepPlace();
  }

  #apply(frame) {
    switch (frame.op) {
      case "snap":
      case "delta":
        if (!this.#streams.apply(frame)) this.#missing();
        break;
      case "message":
        this.#show(frame);
        break;
      case "remove":
        this.#streams.forget(frame.id);
        this.#queue.removed(document.getElementById(frame.id));
        remove(frame.id);
        break;
      case "shift":
        shift(frame);
        break;
      case "context":
        include(frame);
        break;
      case "session":
        setParts(frame.parts);
        setStatus(frame.status);
        page.dataset.archived = frame.archived ? "yes" : "no";
        break;
      case "status":
        setPart("status", frame.html);
        setStatus(frame.status);
        break;
      case "usage":
        setPart("usage", frame.html);
        break;
      case "cancelled":
        say(words.stopped);
        break;
      case "synced":
        if (frame.streaming.some((id) => document.getElementById(id) && !this.#streams.knows(id))) this.#missing();
        break;
    }
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
