// What this browser keeps by a name. Where it keeps nothing (full, or forbidden) all of it lasts as long as the page.

/** The text that is kept by a name; "" if there is none. */
export function kept(name, storage = "localStorage") {
  try {
    return globalThis[storage].getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Keeps a text; an empty one is forgotten. */
export function keep(name, text, storage = "localStorage") {
  try {
    if (text) globalThis[storage].setItem(name, text);
    else globalThis[storage].removeItem(name);
  } catch {
    // the page itself goes on with what it has
  }
}

/** What a text stands for that was kept as JSON; null where it cannot be read. */
export function parsed(text) {
  try {
    return JSON.parse(text || "null");
  } catch {
    return null;
  }
}

/** The value that this tab keeps by a name, also when the page is loaded again; null if there is none. */
export const keptInTab = (name) => parsed(kept(name, "sessionStorage"));

/** Keeps a value for as long as this tab lasts; null is forgotten. */
export const keepInTab = (name, value) => keep(name, value === null ? "" : JSON.stringify(value), "sessionStorage");
