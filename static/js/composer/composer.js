// Writing, dictating and sending messages, including unconfirmed and refused ones (LIVE-04, UI-09).
import { isIdle, setPart, showIdleAgain } from "../messages/frames.js";
import { pendingOf, showPending } from "../messages/list.js";
import { toEnd } from "../messages/scroll.js";
import { ask, live, page } from "../messages/session.js";
import { keep, kept } from "../net/storage.js";
import { offer, on, TOUCH } from "../ui/commands.js";
import { composing, field, fits, grow, insert, restore, sends, unfinished, write } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { notice, say, settle } from "../ui/notice.js";
import * as behavior from "./behavior.js";
import { chosen, commanded, commandSource, connectCompletion, mentionSource, said } from "./completion.js";
import * as drafts from "./drafts.js";
import { looked, Outbox, remember } from "./drafts.js";
import {
  areThere,
  connectDropping,
  connectUploads,
  giveFilesBack,
  hasFiles,
  refresh,
  take,
  tryAgain,
} from "./uploads.js";

// Reports at intervals that the user is typing: "parley:typing" on the document (LIVE-05).

const EVERY = 3_000;
let toldAt = -EVERY;

/** Ignores text that a script inserts, and commands. */
function connectTyping() {
  field.addEventListener("input", (event) => {
    if (!event.isTrusted || !field.value.trim() || field.value.startsWith("/")) return;
    if (event.timeStamp - toldAt < EVERY) return;
    toldAt = event.timeStamp;
    document.dispatchEvent(new Event("parley:typing"));
  });
}

// While the agent works: Stop, and the composer's placeholder (RUN-07, UI-09).

/** Asks the agent to stop. Harmless to repeat. */
async function stop() {
  if (isIdle()) return;
  setPart("status", words.stopping);
  say(words.stopping);
  if (!(await ask({ type: "cancel" }))) showIdleAgain();
}

function connectWorking() {
  on("stop", () => {
    if (!TOUCH.matches) field.focus(); // the button is about to be disabled, and would lose the focus
    stop();
  });
  offer({
    id: "stop",
    label: words.stopTheAgent,
    icon: "circle-stop",
    keys: "Esc",
    slash: "stop",
    run: stop,
    can: () => !isIdle(),
  });
  new MutationObserver(tell).observe(page, { attributeFilter: ["data-status", "data-agent", "data-replies"] });
  tell();
}

/** Escape stops the agent if the field is empty. */
function stopped(event) {
  if (event.key !== "Escape" || composing(event) || field.value || isIdle()) return false;
  stop();
  return true;
}

function tell() {
  const { idle, mentions, waiting, working } = field.dataset;
  const isWaiting = page.dataset.status === "waiting";
  if (!isIdle() && !isWaiting) field.placeholder = working;
  else if (!behavior.repliesTo("all"))
    field.placeholder = mentions; // others do not skip a question either
  else field.placeholder = isWaiting ? waiting : fill(idle, { name: page.dataset.agent });
}

// The keys for sending are explained below the field until the user has sent ten messages in this browser.

const EXPLAINED = 10;
const SENT = "parley:sent-count";

function showHint() {
  form.toggleAttribute("data-practised", Number(kept(SENT)) >= EXPLAINED);
}

function countSent() {
  if (Number(kept(SENT)) < EXPLAINED) keep(SENT, String(Number(kept(SENT)) + 1));
  showHint();
}

const SLOW = 400; // ms after which an unconfirmed message is shown as being sent
const form = document.getElementById("composer");

/** Loads the prompts of MCP servers when the user types a command. */
function findPrompts() {
  if (field.value.startsWith("/") && live.state === "connected") late(() => import("./prompts.js"));
}

export class Composer {
  #outbox = new Outbox(`${page.dataset.viewerId}:${page.dataset.session}`);
  #sent;
  #suggested = "";

  /** `sent` is called when a message goes out over an open connection. */
  constructor(sent) {
    this.#sent = sent;
    form.addEventListener("submit", (event) => this.#submit(event));
    field.addEventListener("keydown", keys);
    live.addEventListener("state", ({ detail }) => (form.dataset.connection = detail.state));
    live.addEventListener("open", tryAgain);
    live.addEventListener("open", () => live.addEventListener("open", refresh), { once: true });
    live.addEventListener("frame", ({ detail }) => detail.op === "message" && sentElsewhere(detail));
    drafts.connect();
    connectTyping();
    connectWorking();
    behavior.connect();
    connectUploads(this.#outbox.pending().flatMap(({ files = [] }) => files));
    connectDropping();
    connectDictation();
    connectCompletion(commandSource, mentionSource);
    field.addEventListener("input", findPrompts);
    grow(field);
    showHint();
    if (!TOUCH.matches) field.focus(); // on a phone that would cover half the page with the keyboard
    for (const entry of this.#outbox.pending()) showPending(entry);
  }

  /** Sends unconfirmed messages again, in order. Harmless to repeat: the key identifies each message. */
  resend() {
    for (const entry of this.#outbox.pending()) this.#send(entry);
  }

  /** Returns messages that waited too long to the field, for the user to decide; returns whether there were any. */
  restoreStale() {
    const stale = this.#outbox.takeStale();
    for (const entry of stale) giveBack(entry);
    return stale.length > 0;
  }

  /** Handles the server's confirmation. The pending row stays until the message itself arrives. */
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

  /** Disables sending for good; the draft can still be read and copied. */
  close() {
    field.readOnly = true;
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  }

  /** Fills in a suggested text. Replaces an earlier suggestion, never the user's own text. */
  suggest(prompt) {
    const { text, from, to } = unfinished(prompt) ?? { text: prompt, from: prompt.length, to: prompt.length };
    if (field.value === this.#suggested) write("");
    this.#suggested = text;
    restore(text);
    field.focus();
    field.setSelectionRange(from, to);
  }

  #submit(event) {
    event.preventDefault();
    if (field.readOnly || commanded(field.value) || !fits(field.value)) return;
    if (!areThere()) return;
    const text = said(field.value);
    const files = take();
    if (!text.trim() && !files.length) return;
    const entry = this.#outbox.add(text, files);
    if (text.trim()) remember(text);
    countSent();
    write("");
    showPending(entry, live.state === "connected" ? SLOW : 0);
    this.#send(entry);
    if (text.includes("@")) late(() => import("./absent_agents.js")).then((agents) => agents?.offerAbsent(text));
    toEnd();
    field.focus();
  }

  #send({ key, text, files = [] }) {
    const attachments = files.map(({ id }) => id);
    if (live.send({ type: "send", text, key, attachments, ref: `send:${key}` })) this.#sent();
  }
}

/** A message of this user's, from whatever device, has taken the files that were attached there. */
function sentElsewhere({ html }) {
  if (hasFiles() && html.includes(` data-user-id="${page.dataset.viewerId}"`)) refresh();
}

/** Returns an unsent message to the field. */
export function giveBack({ text, files = [] }) {
  if (text) restore(text);
  if (files.length) giveFilesBack(files);
}

function keys(event) {
  if (chosen(event)) event.stopPropagation();
  else if (sends(event)) form.requestSubmit();
  else if (!looked(event) && !stopped(event)) return;
  event.preventDefault();
}

// Dictation, in browsers with speech recognition: inserts the recognised text at the caret.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
const button = document.querySelector("[data-action=dictate]");
let listening = null;

function connectDictation() {
  if (!Recognition) return;
  button.hidden = false;
  on("dictate", toggleDictation);
  offer({ id: "dictate", label: words.dictate, icon: "mic", run: toggleDictation });
  addEventListener("pagehide", () => listening?.abort());
  field.form.addEventListener("submit", () => listening?.stop());
}

function toggleDictation() {
  if (listening) return listening.stop();
  listening = new Recognition();
  listening.lang = document.documentElement.lang;
  listening.continuous = true;
  listening.onresult = dictated;
  listening.onerror = dictationFailed;
  listening.onend = () => showListening(null);
  listening.start();
  showListening(listening);
  settle("dictation");
}

/** Inserts each sentence once, when its result is final. */
function dictated({ results, resultIndex }) {
  for (const result of [...results].slice(resultIndex)) {
    if (!result.isFinal) continue;
    const before = field.value.slice(0, field.selectionStart);
    const said = result[0].transcript.trim();
    insert(before && !/\s$/.test(before) ? ` ${said}` : said);
  }
}

function dictationFailed({ error }) {
  if (["no-speech", "aborted"].includes(error)) return;
  const isDenied = ["not-allowed", "service-not-allowed", "audio-capture"].includes(error);
  notice(isDenied ? words.microphoneDenied : words.dictationFailed, { about: "dictation" });
}

function showListening(now) {
  const was = listening;
  listening = now;
  button.setAttribute("aria-pressed", String(now !== null));
  if (now) say(words.listening);
  else if (was && !TOUCH.matches) field.focus();
}
