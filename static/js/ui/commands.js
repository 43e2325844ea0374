// The commands of a page, by name: the palette and the composer's "/" offer the same list.

// Keys that work on the whole page. Ctrl is ⌘ on a Mac, where Ctrl+K and Ctrl+B edit text.

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Returns keys as they are shown: "Ctrl+K" is "⌘K" on a Mac. */
export const shown = (keys) => (isMac ? keys.replace("Ctrl+", "⌘").replace("Alt+", "⌥") : keys);

/** Whether Ctrl (⌘) is held, and no other modifier except Shift. */
export const withControl = (event) =>
  (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey) && !event.altKey;

/** Whether a modal dialog is open: keys are not for the page then. */
export const isBehind = () => document.querySelector("dialog:modal") !== null;

/** Matches where lists and panels cover the page; the style sheets have the same condition. */
export const PHONE = matchMedia("(width < 760px)");

/** Matches devices whose on-screen keyboard covers half the page and has no Shift+Enter. */
export const TOUCH = matchMedia("(hover: none) and (pointer: coarse)");

// Clicks on buttons: one listener for the whole page, by the button's data-action.

const handlers = new Map();

/** Calls `handler(button, event)` for clicks on buttons with this data-action. */
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

/** Tells early.js, which kept earlier clicks, that the page handles clicks now. htmx is ready a moment later. */
export function ready() {
  setTimeout(() => document.dispatchEvent(new Event("parley:ready")));
}

const commands = new Map();
const DANGEROUS = ["delete", "leave"];
// The most wanted commands; the others follow in the order in which they were offered.
const FIRST = ["new", "stop", "find", "share", "rename", "agent", "model", "panel", "system-prompt", "attach", "fork"];

/**
 * Adds a command. `label` is in the user's language, `words` are more names to find it by, `icon` is the name of one
 * in icons.svg, `keys` its shortcut ("Ctrl+K"), `slash` its name after a "/". `run(argument)` carries it out
 * with the text after that name, and returns false if the text is of no use; `can()` says
 * whether it makes sense now. `choices()` lists the possible texts: {label, detail, argument}, or a promise of them.
 */
export function offer({ id, label, words = "", icon, keys = "", slash = "", run, can = () => true, choices = null }) {
  commands.set(id, { id, label, words, icon, keys: shown(keys), slash, run, can, choices });
}

/** Returns the commands that can be used now, the most wanted first. */
export const offered = () => {
  const first = FIRST.map((id) => commands.get(id)).filter(Boolean);
  return [...new Set([...first, ...commands.values()])].filter((command) => command.can());
};

/** Returns those of these commands that can be used now, as items of a menu. */
export function itemsOf(ids) {
  const now = new Map(offered().map((command) => [command.id, command]));
  const item = ({ label, icon, keys, run }) => ({ label, icon, keys, run: () => run("") });
  return ids.filter((id) => now.has(id)).map((id) => ({ ...item(now.get(id)), danger: DANGEROUS.includes(id) }));
}

/** Returns the command with this name after a "/", whether it can be used now or not. */
export const named = (slash) => [...commands.values()].find((command) => command.slash === slash);
