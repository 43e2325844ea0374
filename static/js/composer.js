// Writing and sending: the draft, what is on its way, and what came back (LIVE-04, UI-09).
import { fits } from "./limit.js";
import { Outbox } from "./outbox.js";
import { toEnd } from "./scroll.js";

const SLOW = 400; // an answer that takes longer than this is shown as being sent
const TOUCH = matchMedia("(hover: none) and (pointer: coarse)");
const page = document.getElementById("main");
const form = document.getElementById("composer");
const queue = document.getElementById("queue");
const text = document.getElementById("text");
const name = `${page.dataset.viewerId}:${page.dataset.session}`;
const DRAFT = `parley:draft:${name}`;

export class Composer {
  #live;
  #outbox = new Outbox(name);
  #sent;
  #suggested = "";

  /** `sent` is called when a message goes out over an open connection. */
  constructor(live, sent) {
    this.#live = live;
    this.#sent = sent;
    form.addEventListener("submit", (event) => this.#submit(event));
    text.addEventListener("keydown", (event) => this.#key(event));
    text.addEventListener("input", () => this.#edited());
    text.value = stored() || text.value;
    grow();
    if (!TOUCH.matches) text.focus(); // on a phone that would cover half the page with the keyboard
    for (const { key, text: words } of this.#outbox.pending()) showPending(key, words);
  }

  /** Sends what has not been confirmed, in its order. Harmless to repeat: the key says it is the same message. */
  resend() {
    for (const { key, text: words } of this.#outbox.pending()) this.#send(key, words);
  }

  /** Puts back what waited too long to be said unasked; returns whether there was any. */
  restoreStale() {
    const stale = this.#outbox.takeStale();
    for (const entry of stale) this.restore(entry.text);
    return stale.length > 0;
  }

  /** The server has the message. What is shown as pending stays until the message itself is there. */
  confirmed(key, arrived) {
    this.#outbox.take(key);
    const pending = pendingOf(key);
    if (arrived || pending?.hidden) pending?.remove();
    else setTimeout(() => pending?.remove(), 300);
  }

  refused(key) {
    const entry = this.#outbox.take(key);
    pendingOf(key)?.remove();
    if (entry) this.restore(entry.text);
  }

  /** Nothing can be sent from this page any more; what is written can still be read and copied. */
  close() {
    text.readOnly = true;
    form.querySelector("button.primary").disabled = true;
  }

  /** Puts words back where they were written, before what stands there now. */
  restore(words) {
    text.value = text.value ? `${words}\n${text.value}` : words;
    this.#edited();
  }

  /** Writes words to begin with: in the place of those suggested before, never of somebody's own. */
  suggest(words) {
    if (text.value === this.#suggested) text.value = "";
    this.#suggested = words;
    this.restore(words);
    text.focus();
  }

  #submit(event) {
    event.preventDefault();
    const words = text.value;
    if (!words.trim() || text.readOnly || !fits(words)) return;
    const { key } = this.#outbox.add(words);
    text.value = "";
    this.#edited();
    showPending(key, words, this.#live.state === "connected" ? SLOW : 0);
    this.#send(key, words);
    toEnd();
    text.focus();
  }

  #send(key, words) {
    if (this.#live.send({ type: "send", text: words, key, ref: `send:${key}` })) this.#sent();
  }

  #key(event) {
    if (TOUCH.matches) return; // there is no Shift+Enter on a phone: Enter breaks the line, the button sends
    // Enter that ends the composition of a character must not send (keyCode 229: Safari says it too late).
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit();
  }

  #edited() {
    grow();
    try {
      if (text.value) localStorage.setItem(DRAFT, text.value);
      else localStorage.removeItem(DRAFT);
    } catch {
      // full or forbidden: the draft lives as long as the page
    }
  }
}

function stored() {
  try {
    return localStorage.getItem(DRAFT);
  } catch {
    return "";
  }
}

// Browsers without field-sizing grow the field here.
function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

const pendingOf = (key) => queue.querySelector(`[data-key="${CSS.escape(key)}"]`);

function showPending(key, words, after = 0) {
  const element = document.getElementById("pending").content.firstElementChild.cloneNode(true);
  element.dataset.key = key;
  element.querySelector(".queued-text").textContent = words;
  element.hidden = after > 0;
  queue.append(element);
  if (after) setTimeout(() => (element.hidden = false), after);
}
