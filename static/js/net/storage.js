// The browser's storage. Where it is full or forbidden, values last as long as the page.

/** Returns the text that is stored under a name; "" if there is none. */
export function kept(name, storage = "localStorage") {
  try {
    return globalThis[storage].getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Returns the stored names that begin so. */
export function namesWith(prefix, storage = "localStorage") {
  try {
    return Object.keys(globalThis[storage]).filter((name) => name.startsWith(prefix));
  } catch {
    return [];
  }
}

/** Stores a text; an empty one removes the entry. */
export function keep(name, text, storage = "localStorage") {
  try {
    if (text) globalThis[storage].setItem(name, text);
    else globalThis[storage].removeItem(name);
  } catch {
    // the page keeps its value in memory
  }
}

/** Parses JSON from the storage; null if it is invalid. */
export function parsed(text) {
  try {
    return JSON.parse(text || "null");
  } catch {
    return null;
  }
}

/** Returns the value that this tab stores under a name, which survives reloads; null if there is none. */
export const keptInTab = (name) => parsed(kept(name, "sessionStorage"));

/** Stores a value for as long as the tab is open; null removes it. */
export const keepInTab = (name, value) => keep(name, value === null ? "" : JSON.stringify(value), "sessionStorage");
