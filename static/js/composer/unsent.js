// Messages that were sent but not yet confirmed: kept until they are, over lost connections and reloads (LIVE-04).
import { keep, kept, parsed } from "../net/storage.js";

const A_DAY = 86_400_000;

export class Outbox {
  #name;
  #entries; // the truth; storage has a copy of it, beside what other tabs of the session are waiting for

  constructor(name) {
    this.#name = `parley:outbox:${name}`;
    this.#entries = this.#stored();
  }

  /** Keeps a text with its files and returns their entry; its key makes a repeated send harmless (MSG-02). */
  add(text, files) {
    const entry = { key: crypto.randomUUID?.() ?? randomKey(), text, files, at: Date.now() };
    this.#entries.push(entry);
    this.#copy();
    return entry;
  }

  /** Takes out what the server has, or has refused; returns the entry. */
  take(key) {
    return this.#remove((entry) => entry.key === key)[0];
  }

  pending() {
    return this.#entries.filter((entry) => !isStale(entry));
  }

  /** Takes out what is too old to be said without asking again. */
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
