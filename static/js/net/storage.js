// The browser's storage. If it is blocked, or full of other values than texts that were sent, nothing is stored, and
// values are lost when the page closes.

/** The prefix of the names of sent texts. They are only for recalling, so they give way to other values. */
export const SENT_PREFIX = "parley:sent:";

/** Returns the text that is stored under a name, or "". */
export function readStored(name, storage = "localStorage") {
  try {
    return globalThis[storage].getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Returns the stored names that begin with a prefix. */
export function storedNames(prefix, storage = "localStorage") {
  try {
    return Object.keys(globalThis[storage]).filter((name) => name.startsWith(prefix));
  } catch {
    return [];
  }
}

/** Stores a text under a name. An empty text removes the entry. */
export function writeStored(name, text, storage = "localStorage") {
  try {
    if (text) globalThis[storage].setItem(name, text);
    else globalThis[storage].removeItem(name);
  } catch {
    const sent = storedNames(SENT_PREFIX, storage);
    for (const each of sent) globalThis[storage].removeItem(each);
    if (sent.length) writeStored(name, text, storage); // otherwise the page still has the value in memory
  }
}

/** Parses JSON from the storage. Returns null if it is invalid or empty. */
export function parseJson(text) {
  try {
    return JSON.parse(text || "null");
  } catch {
    return null;
  }
}

/** Returns the value that is stored for this tab under a name, or null. Such values survive reloads. */
export const readTab = (name) => parseJson(readStored(name, "sessionStorage"));

/** Stores a value for this tab until it is closed. Null removes the value. */
export const writeTab = (name, value) =>
  writeStored(name, value === null ? "" : JSON.stringify(value), "sessionStorage");
