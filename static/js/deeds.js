// Everything that a person can have done from here, by name: the palette and the composer's "/" offer the same list.
import { shown } from "./keyboard.js";

const deeds = new Map();
// What one comes for most; the rest follows as it was offered.
const FIRST = ["new", "stop", "find", "share", "rename", "agent", "model", "panel", "system-prompt", "attach", "fork"];

/**
 * Adds something to the list. `label` is in the reader's language, `words` are more names to find it by, `icon` is one
 * of icons.svg, `keys` how the keyboard does it ("Ctrl+K"), `slash` its name behind a "/". `run(argument)` does it
 * with what was written behind the slash's name, and returns false when nothing could be made of that; `can()` says
 * whether it makes sense now. `choices()` lists what may be written there: {label, detail, argument}, or a promise.
 */
export function offer({ id, label, words = "", icon, keys = "", slash = "", run, can = () => true, choices = null }) {
  deeds.set(id, { id, label, words, icon, keys: shown(keys), slash, run, can, choices });
}

/** What can be done now, what is wanted most first. */
export const offered = () => {
  const first = FIRST.map((id) => deeds.get(id)).filter(Boolean);
  return [...new Set([...first, ...deeds.values()])].filter((deed) => deed.can());
};

/** What has this name behind a "/", whether it can be done now or not. */
export const named = (slash) => [...deeds.values()].find((deed) => deed.slash === slash);
