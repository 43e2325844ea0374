// Writing and sending messages, including unconfirmed and refused ones (LIVE-04, UI-09).
import { isIdle, setPart } from "../messages/frames.js";
import { findPending, isShown, showPending } from "../messages/list.js";
import { scrollToEnd } from "../messages/scroll.js";
import { live, page } from "../messages/session.js";
import { readStored, writeStored } from "../net/storage.js";
import { addCommand, onAction, TOUCH } from "../ui/commands.js";
import { checkLength, field, growWithText, isComposing, isSendKey, restoreText, setText } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { lazyImport } from "../ui/loading.js";
import { announce, showNotice } from "../ui/notice.js";
import * as behavior from "./behavior.js";
import {
  commandSource,
  connectCompletion,
  handleCompletionKey,
  mentionSource,
  runIfCommand,
  unescapeSlash,
} from "./completion.js";
import * as drafts from "./drafts.js";
import { recallOnArrow, rememberSent, UnsentMessages } from "./drafts.js";
import {
  connectDropping,
  connectUploads,
  ensureUploaded,
  hasUploadedFiles,
  refreshFiles,
  restoreFiles,
  retryFailed,
  takeUploaded,
} from "./uploads.js";

// Reports typing by the event "parley:typing" on the document, at most once per interval (LIVE-05).

const TYPING_INTERVAL_MS = 3_000;
let reportedAt = -TYPING_INTERVAL_MS;

/** Reports typing. Ignores text that a script inserts, and commands. */
function connectTyping() {
  field.addEventListener("input", (event) => {
    if (!event.isTrusted || !field.value.trim() || field.value.startsWith("/")) return;
    if (event.timeStamp - reportedAt < TYPING_INTERVAL_MS) return;
    reportedAt = event.timeStamp;
    document.dispatchEvent(new Event("parley:typing"));
  });
}

// While the agent works: Stop, and the composer's placeholder (RUN-07, UI-09).

const STOP_REPEAT_MS = 30_000; // after this time without a connection, another turn may be running

/** Asks the agent to stop. Without a connection, asks at the next one, because the request can be repeated safely. */
async function stopAgent() {
  if (isIdle()) return;
  const shown = document.getElementById("status");
  const before = shown.innerHTML;
  setPart("status", words.stopping);
  announce(words.stopping);
  if (await requestStop(performance.now() + STOP_REPEAT_MS)) return;
  if (shown.textContent === words.stopping) setPart("status", isIdle() ? "" : before);
}

/** Resolves to whether the server has got the request. If the connection is lost, it is repeated until a time. */
async function requestStop(until) {
  try {
    return await live.request({ type: "cancel" });
  } catch ({ code, message }) {
    const isLost = code === "offline" || code === "lost";
    if (isLost && (await reconnects(until - performance.now()))) return requestStop(until);
    showNotice(message, { about: "cancel" });
    return null;
  }
}

/** Resolves to whether the page connects again within `ms`. */
function reconnects(ms) {
  return new Promise((resolve) => {
    live.addEventListener("state", ({ detail }) => detail.state === "connected" && resolve(true), {
      signal: AbortSignal.timeout(Math.max(0, ms)),
    });
    setTimeout(resolve, ms);
  });
}

function connectStop() {
  onAction("stop", () => {
    if (!TOUCH.matches) field.focus(); // the button is about to be disabled, which would lose the focus
    stopAgent();
  });
  addCommand({
    id: "stop",
    label: words.stopTheAgent,
    icon: "circle-stop",
    keys: "Esc",
    slash: "stop",
    run: stopAgent,
    can: () => !isIdle(),
  });
  new MutationObserver(updatePlaceholder).observe(page, {
    attributeFilter: ["data-status", "data-agent", "data-replies"],
  });
  updatePlaceholder();
}

/** Stops the agent on Escape if the field is empty. Returns whether it did. */
function stopOnEscape(event) {
  if (event.key !== "Escape" || isComposing(event) || field.value || isIdle()) return false;
  stopAgent();
  return true;
}

function updatePlaceholder() {
  const { idle, mentions, waiting, working } = field.dataset;
  const isWaiting = page.dataset.status === "waiting";
  if (!isIdle() && !isWaiting) field.placeholder = working;
  else if (!behavior.repliesTo("all"))
    field.placeholder = mentions; // the agent ignores other messages, even while it has a question
  else field.placeholder = isWaiting ? waiting : format(idle, { name: page.dataset.agent });
}

// A hint below the field explains the keys for sending, until the user has sent ten messages in this browser.

const HINT_MESSAGES = 10;
const SENT_COUNT = "parley:sent-count";

function showHint() {
  form.toggleAttribute("data-no-hint", Number(readStored(SENT_COUNT)) >= HINT_MESSAGES);
}

function countSent() {
  if (Number(readStored(SENT_COUNT)) < HINT_MESSAGES)
    writeStored(SENT_COUNT, String(Number(readStored(SENT_COUNT)) + 1));
  showHint();
}

const PENDING_DELAY_MS = 400; // ms after which an unconfirmed message is shown as being sent
const form = document.getElementById("composer");

/** Loads the prompts of MCP servers when the user types a command. */
function loadPrompts() {
  if (field.value.startsWith("/") && live.state === "connected") lazyImport(() => import("./prompts.js"));
}

export class Composer {
  #unsent = new UnsentMessages(`${page.dataset.viewerId}:${page.dataset.session}`);
  #onSent;

  /** `onSent` is called when a message is sent over an open connection. */
  constructor(onSent) {
    this.#onSent = onSent;
    form.addEventListener("submit", (event) => this.#submit(event));
    field.addEventListener("keydown", handleKey);
    live.addEventListener("state", ({ detail }) => (form.dataset.connection = detail.state));
    live.addEventListener("open", retryFailed);
    live.addEventListener("open", () => live.addEventListener("open", refreshFiles), { once: true });
    live.addEventListener("frame", ({ detail }) => detail.op === "message" && refreshFilesIfSent(detail));
    drafts.connect();
    connectTyping();
    connectStop();
    behavior.connect();
    connectUploads(this.#unsent.pending().flatMap(({ files = [] }) => files));
    connectDropping();
    connectDictation();
    connectCompletion(commandSource, mentionSource);
    field.addEventListener("input", loadPrompts);
    growWithText(field);
    showHint();
    if (!TOUCH.matches) field.focus(); // on a phone the keyboard would cover half the page
    for (const entry of this.#unsent.pending()) showPending(entry);
  }

  /** Sends unconfirmed messages again, in order. The server ignores repetitions, because each message has a key. */
  resend() {
    for (const entry of this.#unsent.pending()) this.#send(entry);
  }

  /**
   * Moves messages that waited too long back to the field, with a notice. Leaves out those that the page shows: only the
   * server's confirmation was lost.
   */
  restoreStale() {
    const stale = this.#unsent.removeStale();
    for (const { key } of stale) findPending(key)?.remove();
    const lost = stale.filter((entry) => !isShown(entry));
    for (const entry of lost.reverse()) restoreUnsent(entry); // each above the others
    if (lost.length) showNotice(words.kept, { about: "send" });
  }

  /**
   * Handles the server's confirmation. The pending row stays for a moment if the message itself has not arrived yet.
   */
  confirmed(key, arrived) {
    this.#unsent.remove(key);
    const pending = findPending(key);
    if (arrived || pending?.hidden) pending?.remove();
    else setTimeout(() => pending?.remove(), 300);
  }

  refused(key) {
    const entry = this.#unsent.remove(key);
    findPending(key)?.remove();
    if (entry) restoreUnsent(entry);
  }

  /** Disables sending permanently. The draft can still be read and copied. */
  close() {
    field.readOnly = true;
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  }

  #submit(event) {
    event.preventDefault();
    if (field.readOnly || runIfCommand(field.value) || !checkLength(field.value)) return;
    if (!ensureUploaded()) return;
    const text = unescapeSlash(field.value);
    const files = takeUploaded();
    if (!text.trim() && !files.length) return;
    const entry = this.#unsent.add(text, files);
    if (text.trim()) rememberSent(text);
    countSent();
    setText("");
    showPending(entry, live.state === "connected" ? PENDING_DELAY_MS : 0);
    this.#send(entry);
    if (text.includes("@"))
      lazyImport(() => import("./mentions.js")).then((mentions) => mentions?.offerAbsentAgent(text));
    scrollToEnd();
    field.focus();
  }

  #send({ key, text, files = [] }) {
    const attachments = files.map(({ id }) => id);
    if (live.send({ type: "send", text, key, attachments, ref: `send:${key}` })) this.#onSent();
  }
}

/** Refreshes the attached files after the user has sent a message, perhaps on another device. */
function refreshFilesIfSent({ html }) {
  if (hasUploadedFiles() && html.includes(` data-user-id="${page.dataset.viewerId}"`)) refreshFiles();
}

/** Puts an unsent message and its files back into the composer. */
export function restoreUnsent({ text, files = [] }) {
  if (text) restoreText(text);
  if (files.length) restoreFiles(files);
}

function handleKey(event) {
  if (handleCompletionKey(event)) event.stopPropagation();
  else if (isSendKey(event)) form.requestSubmit();
  else if (!recallOnArrow(event) && !stopOnEscape(event)) return;
  event.preventDefault();
}

// Dictation, in browsers with speech recognition. The module is loaded on first use.

function connectDictation() {
  if (!(globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition)) return;
  const dictate = async () => (await lazyImport(() => import("./dictation.js")))?.toggleDictation();
  document.querySelector("[data-action=dictate]").hidden = false;
  onAction("dictate", dictate);
  addCommand({ id: "dictate", label: words.dictate, icon: "mic", run: dictate });
}
