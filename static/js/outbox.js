// Messages that were sent but not yet confirmed: kept until they are, over lost connections and reloads (LIVE-04).

const A_DAY = 86_400_000;

export class Outbox {
  #name;
  #memory = [];

  constructor(name) {
    this.#name = `parley:outbox:${name}`;
    this.#memory = this.#read();
  }

  /** Keeps a text and returns its entry; its key makes a repeated send harmless (MSG-02). */
  add(text) {
    const entry = { key: crypto.randomUUID?.() ?? randomKey(), text, at: Date.now() };
    this.#write([...this.#read(), entry]);
    return entry;
  }

  /** Takes out what the server has, or has refused; returns the entry. */
  take(key) {
    const entries = this.#read();
    this.#write(entries.filter((entry) => entry.key !== key));
    return entries.find((entry) => entry.key === key);
  }

  pending() {
    return this.#read().filter((entry) => Date.now() - entry.at < A_DAY);
  }

  /** Takes out what is too old to be said without asking again. */
  takeStale() {
    const entries = this.#read();
    this.#write(this.pending());
    return entries.filter((entry) => Date.now() - entry.at >= A_DAY);
  }

  #read() {
    try {
      return JSON.parse(localStorage.getItem(this.#name)) ?? [];
    } catch {
      return this.#memory; // no storage: kept for this page
    }
  }

  #write(entries) {
    this.#memory = entries;
    try {
      if (entries.length) localStorage.setItem(this.#name, JSON.stringify(entries));
      else localStorage.removeItem(this.#name);
    } catch {
      // full or forbidden: the copy in memory must do
    }
  }
}

// crypto.randomUUID exists on secure origins only; Parley also runs on http in a home network.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
