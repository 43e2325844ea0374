// Drafts, which are stored in this browser immediately and on the server a little later, for the user's other devices.
// Also the texts that the user has sent.
import { live, page } from "../messages/session.js";
import { PAGE_REQUESTED_AT } from "../net/http.js";
import { parseJson, readStored, SENT_PREFIX, writeStored } from "../net/storage.js";
import { parseHtml } from "../ui/dom.js";
import { field, initializeText, isComposing, setText } from "../ui/field.js";

const SEND_INTERVAL_MS = 2_000;
const DRAFT_NAME = `parley:draft:${page.dataset.viewerId}:${page.dataset.session}`;
// The draft that the server has confirmed. If the field's text differs, the user has changed it since.
let confirmedText = field?.defaultValue ?? "";
let confirmedAt = 0;
let sentText = confirmedText; // the draft that was sent last, which may not be confirmed yet
let sendTimer = 0;
let sentAt = 0;
let mirroredText = null; // another tab's draft, until the user types here
let typedAt = 0; // when the user last typed here

/** Fills in the newest draft: that of this browser, or that of the server, which was rendered with the page. */
export function connect() {
  const mine = parseJson(readStored(DRAFT_NAME));
  initializeText(mine && isNewer(mine) ? mine.text : field.defaultValue);
  field.setSelectionRange(field.value.length, field.value.length); // the user continues to write at the end
  field.addEventListener("input", handleInput);
  addEventListener("storage", syncFromStorage);
  addEventListener("pagehide", sendNow);
  document.addEventListener("visibilitychange", () => document.hidden && sendNow());
  live.addEventListener("open", sendSoon);
  live.addEventListener("frame", ({ detail }) => detail.op === "message" && clearIfSentElsewhere(detail));
}

/**
 * Returns whether this browser's draft is newer than the one that the server rendered. If the server still has the draft
 * that it has confirmed here, no other device has changed it. Otherwise the clocks decide, which can differ.
 */
function isNewer({ text, said, at, saidAt }) {
  const isLater = said === field.defaultValue || at >= Number(field.dataset.draftAt || 0);
  return (text !== said && isLater) || saidAt > PAGE_REQUESTED_AT;
}

/** Sends the draft to the server immediately. */
function sendNow() {
  clearTimeout(sendTimer);
  sendTimer = 0;
  const text = field.value;
  if (text === sentText || live.state !== "connected") return;
  sentText = text;
  sentAt = Date.now();
  live.request({ type: "draft", text }).then(
    () => recordConfirmed(text),
    () => (sentText = confirmedText), // so that the next change sends it again
  );
}

/** Stores which draft the server has. Keeps the stored text, because another tab may have stored a newer one. */
function recordConfirmed(text) {
  confirmedText = text;
  confirmedAt = Date.now();
  storeDraft(parseJson(readStored(DRAFT_NAME)) ?? undefined);
}

function handleInput() {
  mirroredText = null;
  typedAt = Date.now();
  storeDraft();
  if (field.value) sendSoon();
  else sendNow();
}

function sendSoon() {
  if (field.value !== sentText) sendTimer ||= setTimeout(sendNow, Math.max(0, sentAt + SEND_INTERVAL_MS - Date.now()));
}

function storeDraft({ text, at } = { text: field.value, at: Date.now() }) {
  writeStored(
    DRAFT_NAME,
    text || confirmedText ? JSON.stringify({ text, said: confirmedText, at, saidAt: confirmedAt }) : "",
  );
}

/**
 * Shows another tab's draft, unless the user has typed a different one in this tab. Compares the field with
 * `mirroredText`, too: if several tabs write at the same time, `oldValue` is not always what this tab has seen.
 */
function syncFromStorage(event) {
  if (event.key !== DRAFT_NAME) return;
  const [before, after] = [parseJson(event.oldValue), parseJson(event.newValue)];
  confirmedText = sentText = after?.said ?? "";
  // The other tab stored its text without knowing what the user has typed here since, which is stored again.
  if (after?.at < typedAt) return storeDraft({ text: field.value, at: typedAt });
  const isFollowing = field.value === mirroredText || field.value === (before?.text ?? "");
  if (isFollowing && field.value !== (after?.text ?? "")) mirrorDraft(after?.text ?? "");
}

/** Clears a draft that was sent from another device. */
function clearIfSentElsewhere({ id, html }) {
  if (!field.value || field.value !== confirmedText || document.getElementById(id)) return;
  const message = parseHtml(html).firstElementChild;
  if (message?.dataset.userId !== page.dataset.viewerId) return;
  if (!message.querySelector(".plain, .queued-text")?.textContent.startsWith(field.value)) return;
  confirmedText = sentText = "";
  mirrorDraft("");
  storeDraft();
}

/** Shows a draft from another tab or device. */
function mirrorDraft(text) {
  mirroredText = text;
  field.removeEventListener("input", handleInput);
  setText(text);
  field.addEventListener("input", handleInput);
}

// Sent messages. They are stored until the server has them, also across lost connections and reloads (LIVE-04).
// Arrow-up in an empty field recalls their texts, newest first.

const DAY_MS = 86_400_000;

export class UnsentMessages {
  #name;
  #entries; // the storage has a copy, and the entries of other tabs

  constructor(name) {
    this.#name = `parley:outbox:${name}`;
    this.#entries = this.#readStored();
  }

  /** Stores a text with its files and returns the entry. Its key lets the server ignore repeated sends (MSG-02). */
  add(text, files) {
    const entry = { key: crypto.randomUUID?.() ?? randomKey(), text, files, at: Date.now() };
    this.#entries.push(entry);
    this.#store();
    return entry;
  }

  /** Removes and returns an entry that the server has accepted or refused. */
  remove(key) {
    return this.#removeWhere((entry) => entry.key === key)[0];
  }

  pending() {
    return this.#entries.filter((entry) => !isStale(entry));
  }

  /** Removes and returns entries that are too old to be sent without asking the user. */
  removeStale() {
    return this.#removeWhere(isStale);
  }

  #removeWhere(condition) {
    const removed = this.#entries.filter(condition);
    this.#entries = this.#entries.filter((entry) => !removed.includes(entry));
    this.#store(removed);
    return removed;
  }

  #readStored() {
    return parseJson(readStored(this.#name)) ?? [];
  }

  #store(removed = []) {
    const known = new Set([...this.#entries, ...removed].map((entry) => entry.key));
    const entries = [...this.#readStored().filter((entry) => !known.has(entry.key)), ...this.#entries];
    writeStored(this.#name, entries.length ? JSON.stringify(entries) : "");
  }
}

const isStale = (entry) => Date.now() - entry.at >= DAY_MS;

// crypto.randomUUID exists only on secure origins, and Parley also runs over http in home networks.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Recalling sent texts.

const MAX_SENT = 50;
const MAX_SENT_CHARACTERS = 20_000; // in each session, because the storage has about 5,000,000 for all
const SENT_NAME = `${SENT_PREFIX}${page.dataset.viewerId}:${page.dataset.session}`;
let recallable = []; // the recalled texts, newest first
let recalledIndex = -1;

/** Stores a sent text. */
export function rememberSent(text) {
  if (text.length > MAX_SENT_CHARACTERS) return;
  const sent = [...storedTexts().filter((other) => other !== text), text].slice(-MAX_SENT);
  while (sent.join("").length > MAX_SENT_CHARACTERS) sent.shift();
  writeStored(SENT_NAME, JSON.stringify(sent));
}

/** Handles arrow-up and arrow-down, which go through sent texts. Returns true if it has handled the key. */
export function recallOnArrow(event) {
  if (isComposing(event) || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
  const isRecalling = recalledIndex >= 0 && field.value === recallable[recalledIndex];
  if (!isRecalling) recalledIndex = -1;
  if (event.key === "ArrowUp" && (isRecalling || !field.value)) return recallOlder();
  if (!isRecalling || !["ArrowDown", "Escape"].includes(event.key)) return false;
  recall(event.key === "Escape" ? -1 : recalledIndex - 1);
  return true;
}

function recallOlder() {
  if (recalledIndex < 0) recallable = sentTexts();
  if (recalledIndex + 1 < recallable.length) recall(recalledIndex + 1);
  return recallable.length > 0;
}

function recall(number) {
  recalledIndex = number;
  setText(recallable[recalledIndex] ?? "");
  field.setSelectionRange(field.value.length, field.value.length);
}

function sentTexts() {
  const shown = document.querySelectorAll("#messages .user.mine .plain, #queue .queued.mine .queued-text");
  const texts = [...storedTexts(), ...[...shown].map((element) => element.textContent)];
  return [...new Set(texts.reverse())].filter((text) => text.trim());
}

function storedTexts() {
  const sent = parseJson(readStored(SENT_NAME));
  return Array.isArray(sent) ? sent : [];
}
