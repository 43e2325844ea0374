// Sent messages: stored until the server has them, across lost connections and reloads (LIVE-04), and recalled by
// arrow-up in an empty field, the newest first.
import { page } from "../messages/session.js";
import { keep, kept, parsed } from "../net/storage.js";
import { composing, field, write } from "../ui/field.js";

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
const NAME = `parley:sent:${page.dataset.viewerId}:${page.dataset.session}`;
let found = []; // the recalled texts, newest first
let place = -1;

/** Stores a sent text. */
export function remember(text) {
  const sent = [...stored().filter((other) => other !== text), text];
  keep(NAME, JSON.stringify(sent.slice(-MOST)));
}

/** Handles arrow-up and arrow-down through sent texts; returns true if the key was one of these. */
export function looked(event) {
  if (composing(event) || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
  const looking = place >= 0 && field.value === found[place];
  if (!looking) place = -1;
  if (event.key === "ArrowUp" && (looking || !field.value)) return older();
  if (!looking || !["ArrowDown", "Escape"].includes(event.key)) return false;
  show(event.key === "Escape" ? -1 : place - 1);
  return true;
}

function older() {
  if (place < 0) found = sentHere();
  if (place + 1 < found.length) show(place + 1);
  return found.length > 0;
}

function show(number) {
  place = number;
  write(found[place] ?? "");
  field.setSelectionRange(field.value.length, field.value.length);
}

function sentHere() {
  const shown = document.querySelectorAll("#messages .user.mine .plain, #queue .queued.mine .queued-text");
  const texts = [...stored(), ...[...shown].map((element) => element.textContent)];
  return [...new Set(texts.reverse())].filter((text) => text.trim());
}

function stored() {
  const sent = parsed(kept(NAME));
  return Array.isArray(sent) ? sent : [];
}
