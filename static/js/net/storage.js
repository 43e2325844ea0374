// The browser's storage. If it is full or blocked, nothing is stored, and values are lost when the page closes.

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
    // the page still has the value in memory
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
