// Everything that a person can have done from here, by name: the palette and the composer's "/" offer the same list.

// Keys that work on the whole page, as this system has them: Ctrl is ⌘ on a Mac, whose Ctrl+K and Ctrl+B edit text.

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Keys as they are told to people: "Ctrl+K" is "⌘K" on a Mac. */
export const shown = (keys) => (isMac ? keys.replace("Ctrl+", "⌘").replace("Alt+", "⌥") : keys);

/** Whether Ctrl (⌘) is held, and no other key of its kind but Shift. */
export const withControl = (event) =>
  (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey) && !event.altKey;

/** Whether the page waits behind a dialog: keys are not for it then. */
export const isBehind = () => document.querySelector("dialog:modal") !== null;

/** Matches where lists and panels cover the page, as the style sheets have it. */
export const PHONE = matchMedia("(width < 760px)");

/** Matches where a keyboard comes over half the page, and has no Shift+Enter. */
export const TOUCH = matchMedia("(hover: none) and (pointer: coarse)");

// What people do with buttons: one listener for the whole page, by the button's data-action.

const handlers = new Map();

/** Lets `handler(button, event)` do what buttons with this data-action ask for. */
export function on(action, handler) {
  if (handlers.has(action)) throw new Error(`Two handlers for ${action}`);
  handlers.set(action, handler);
}

export function connect() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-action]");
    if (button && !button.disabled) handlers.get(button.dataset.action)?.(button, event);
  });
}

/** Says that the page heeds what is done, to early.js, which kept what was done before. htmx listens a moment later. */
export function ready() {
  setTimeout(() => document.dispatchEvent(new Event("parley:ready")));
}

const deeds = new Map();
const DANGEROUS = ["delete", "leave"];
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

/** What can be done now of these, as items of a menu. */
export function itemsOf(ids) {
  const now = new Map(offered().map((deed) => [deed.id, deed]));
  const item = ({ label, icon, keys, run }) => ({ label, icon, keys, run: () => run("") });
  return ids.filter((id) => now.has(id)).map((id) => ({ ...item(now.get(id)), danger: DANGEROUS.includes(id) }));
}

/** What has this name behind a "/", whether it can be done now or not. */
export const named = (slash) => [...deeds.values()].find((deed) => deed.slash === slash);
