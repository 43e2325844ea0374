// What the user has written: drafts, stored at once in this browser and soon on the server for the user's other devices,
// and sent messages.
import { live, page } from "../messages/session.js";
import { keep, kept, parsed } from "../net/storage.js";
import { parse } from "../ui/dom.js";
import { begin, composing, field, write } from "../ui/field.js";

const EVERY = 2_000;
const NAME = `parley:draft:${page.dataset.viewerId}:${page.dataset.session}`;
const ASKED_AT = Date.now() - performance.now(); // when this page was requested
// `said` is the draft that the server has; a different one was typed here since. `told` may still be on its way there.
let said = field?.defaultValue ?? "";
let saidAt = 0;
let told = said;
let timer = 0;
let sentAt = 0;
let mirrored = null; // another tab's draft, until the user types here

/** Starts with the newest draft: this browser's, or the server's when the page was rendered. */
export function connect() {
  const mine = parsed(kept(NAME));
  begin(mine && isNewer(mine) ? mine.text : field.defaultValue);
  field.setSelectionRange(field.value.length, field.value.length); // continue at the end
  field.addEventListener("input", edited);
  addEventListener("storage", followed);
  addEventListener("pagehide", flush);
  document.addEventListener("visibilitychange", () => document.hidden && flush());
  live.addEventListener("open", soon);
  live.addEventListener("frame", ({ detail }) => detail.op === "message" && sentElsewhere(detail));
}

/** Whether this browser's draft is newer than the one that the server rendered. */
function isNewer({ text, said, at, saidAt }) {
  return (text !== said && at >= Number(field.dataset.draftAt || 0)) || saidAt > ASKED_AT;
}

/** Sends the draft to the server at once. */
function flush() {
  clearTimeout(timer);
  timer = 0;
  const text = field.value;
  if (text === told || live.state !== "connected") return;
  told = text;
  sentAt = Date.now();
  live.request({ type: "draft", text }).then(
    () => known(text),
    () => (told = said), // it stays in this browser and is sent with the next change
  );
}

/** Leaves the stored draft alone: another tab may have a newer one. */
function known(text) {
  said = text;
  saidAt = Date.now();
  keepDraft(parsed(kept(NAME)) ?? undefined);
}

function edited() {
  mirrored = null;
  keepDraft();
  if (field.value) soon();
  else flush();
}

function soon() {
  if (field.value !== told) timer ||= setTimeout(flush, Math.max(0, sentAt + EVERY - Date.now()));
}

function keepDraft({ text, at } = { text: field.value, at: Date.now() }) {
  keep(NAME, text || said ? JSON.stringify({ text, said, at, saidAt }) : "");
}

/**
 * Shows another tab's draft unless this tab has a different one of its own. The previous value in the storage is not
 * always the one that this tab has seen, because tabs write at the same time.
 */
function followed(event) {
  if (event.key !== NAME) return;
  const [before, after] = [parsed(event.oldValue), parsed(event.newValue)];
  said = told = after?.said ?? "";
  const isFollowing = field.value === mirrored || field.value === (before?.text ?? "");
  if (isFollowing && field.value !== (after?.text ?? "")) follow(after?.text ?? "");
}

/** Clears a draft that was sent from another device. */
function sentElsewhere({ id, html }) {
  if (!field.value || field.value !== said || document.getElementById(id)) return;
  const message = parse(html).firstElementChild;
  if (message?.dataset.userId !== page.dataset.viewerId) return;
  if (!message.querySelector(".plain, .queued-text")?.textContent.startsWith(field.value)) return;
  said = told = "";
  follow("");
  keepDraft();
}

/** Shows a draft from another tab or device. */
function follow(text) {
  mirrored = text;
  field.removeEventListener("input", edited);
  write(text);
  field.addEventListener("input", edited);
}

// Sent messages: stored until the server has them, across lost connections and reloads (LIVE-04), and recalled by
// arrow-up in an empty field, the newest first.

const A_DAY = 86_400_000;

export class Outbox {
  #name;
  #entries; // the storage has a copy, beside the entries of other tabs

  constructor(name) {
    this.#name = `parley:outbox:${name}`;
    this.#entries = this.#stored();
  }

  /** Stores a text with its files and returns the entry; its key makes a repeated send harmless (MSG-02). */
  add(text, files) {
    const entry = { key: crypto.randomUUID?.() ?? randomKey(), text, files, at: Date.now() };
    this.#entries.push(entry);
    this.#copy();
    return entry;
  }

  /** Removes and returns an entry that the server has accepted or refused. */
  take(key) {
    return this.#remove((entry) => entry.key === key)[0];
  }

  pending() {
    return this.#entries.filter((entry) => !isStale(entry));
  }

  /** Removes and returns entries that are too old to be sent without asking the user. */
  takeStale() {
    return this.#remove(isStale);
  }

  #remove(condition) {
    const removed = this.#entries.filter(condition);
    this.#entries = this.#entries.filter((entry) => !removed.includes(entry));
    this.#copy(removed);
    return removed;
  }

  #stored() {
    return parsed(kept(this.#name)) ?? [];
  }

  #copy(removed = []) {
    const known = new Set([...this.#entries, ...removed].map((entry) => entry.key));
    const entries = [...this.#stored().filter((entry) => !known.has(entry.key)), ...this.#entries];
    keep(this.#name, entries.length ? JSON.stringify(entries) : "");
  }
}

const isStale = (entry) => Date.now() - entry.at >= A_DAY;

// crypto.randomUUID exists on secure origins only; Parley also runs on http in a home network.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Recalling sent texts.

const MOST = 50;
const SENT = `parley:sent:${page.dataset.viewerId}:${page.dataset.session}`;
let found = []; // the recalled texts, newest first
let recalled = -1;

/** Stores a sent text. */
export function remember(text) {
  const sent = [...sentBefore().filter((other) => other !== text), text];
  keep(SENT, JSON.stringify(sent.slice(-MOST)));
}

/** Handles arrow-up and arrow-down through sent texts; returns true if the key was one of these. */
export function looked(event) {
  if (composing(event) || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
  const looking = recalled >= 0 && field.value === found[recalled];
  if (!looking) recalled = -1;
  if (event.key === "ArrowUp" && (looking || !field.value)) return older();
  if (!looking || !["ArrowDown", "Escape"].includes(event.key)) return false;
  recall(event.key === "Escape" ? -1 : recalled - 1);
  return true;
}

function older() {
  if (recalled < 0) found = sentHere();
  if (recalled + 1 < found.length) recall(recalled + 1);
  return found.length > 0;
}

function recall(number) {
  recalled = number;
  write(found[recalled] ?? "");
  field.setSelectionRange(field.value.length, field.value.length);
}

function sentHere() {
  const shown = document.querySelectorAll("#messages .user.mine .plain, #queue .queued.mine .queued-text");
  const texts = [...sentBefore(), ...[...shown].map((element) => element.textContent)];
  return [...new Set(texts.reverse())].filter((text) => text.trim());
}

function sentBefore() {
  const sent = parsed(kept(SENT));
  return Array.isArray(sent) ? sent : [];
}
