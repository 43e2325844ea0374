// Writing and sending: what is on its way, and what came back (LIVE-04, UI-09).
import * as completion from "./completion.js";
import * as dictation from "./dictation.js";
import * as drafts from "./drafts.js";
import * as dropping from "./dropping.js";
import { field, restore, sends, write } from "./field.js";
import * as history from "./history.js";
import { TOUCH } from "./keyboard.js";
import { fits } from "./limit.js";
import * as mentions from "./mentions.js";
import { notice, settle } from "./notice.js";
import { Outbox } from "./outbox.js";
import { live, page } from "./page.js";
import { pendingOf, showPending } from "./pending.js";
import { toEnd } from "./scroll.js";
import * as slash from "./slash.js";
import * as typing from "./typing.js";
import * as uploads from "./uploads.js";
import { words } from "./words.js";
import * as working from "./working.js";

const SLOW = 400; // an answer that takes longer than this is shown as being sent
const form = document.getElementById("composer");

export class Composer {
  #outbox = new Outbox(`${page.dataset.viewerId}:${page.dataset.session}`);
  #sent;
  #suggested = "";
  #waiting = false; // to be sent when the files are there

  /** `sent` is called when a message goes out over an open connection. */
  constructor(sent) {
    this.#sent = sent;
    form.addEventListener("submit", (event) => this.#submit(event));
    field.addEventListener("keydown", keys);
    field.addEventListener("input", () => this.#edited());
    live.addEventListener("state", ({ detail }) => (form.dataset.connection = detail.state));
    document.addEventListener("parley:uploads", () => this.#uploaded());
    drafts.start();
    typing.start();
    working.start();
    uploads.start();
    dropping.start();
    dictation.start();
    completion.start(slash.source, mentions.source);
    grow();
    if (!TOUCH.matches) field.focus(); // on a phone that would cover half the page with the keyboard
    for (const entry of this.#outbox.pending()) showPending(entry);
  }

  /** Sends what has not been confirmed, in its order. Harmless to repeat: the key says it is the same message. */
  resend() {
    for (const entry of this.#outbox.pending()) this.#send(entry);
  }

  /** Puts back what waited too long to be said unasked; returns whether there was any. */
  restoreStale() {
    const stale = this.#outbox.takeStale();
    for (const entry of stale) giveBack(entry);
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
    if (entry) giveBack(entry);
  }

  /** Nothing can be sent from this page any more; what is written can still be read and copied. */
  close() {
    field.readOnly = true;
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  }

  /** Writes words to begin with: in the place of those suggested before, never of somebody's own. */
  suggest(words) {
    if (field.value === this.#suggested) write("");
    this.#suggested = words;
    restore(words);
    field.focus();
  }

  #edited() {
    grow();
    if (this.#waiting) this.#wait(false);
  }

  #submit(event) {
    event.preventDefault();
    if (field.readOnly || slash.commanded(field.value) || !fits(field.value)) return;
    if (uploads.hasFailed()) return notice(words.uploadsFailed, { about: "uploads" });
    if (uploads.isUploading()) return this.#wait(true);
    const text = slash.said(field.value);
    const files = uploads.take();
    if (!text.trim() && !files.length) return;
    const entry = this.#outbox.add(text, files);
    if (text.trim()) history.remember(text);
    write("");
    showPending(entry, live.state === "connected" ? SLOW : 0);
    this.#send(entry);
    toEnd();
    field.focus();
  }

  /** Sends by itself when the files are there, unless somebody goes on writing. */
  #wait(waits) {
    this.#waiting = waits;
    form.querySelector(".send span").textContent = waits ? words.uploading : words.send;
  }

  #uploaded() {
    const waited = this.#waiting;
    if (!uploads.hasFailed()) settle("uploads");
    if (uploads.isUploading()) return;
    this.#wait(false);
    if (waited && !uploads.hasFailed()) form.requestSubmit();
  }

  #send({ key, text, files = [] }) {
    const attachments = files.map(({ id }) => id);
    if (live.send({ type: "send", text, key, attachments, ref: `send:${key}` })) this.#sent();
  }
}

/** Puts what was not said after all back where it was written. */
export function giveBack({ text, files = [] }) {
  if (text) restore(text);
  if (files.length) uploads.giveBack(files);
}

function keys(event) {
  if (completion.chosen(event)) event.stopPropagation();
  else if (sends(event)) form.requestSubmit();
  else if (!history.looked(event) && !working.stopped(event)) return;
  event.preventDefault();
}

// Browsers without field-sizing grow the field here.
function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}
