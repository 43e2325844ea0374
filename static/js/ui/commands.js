// The commands of a page. The palette and the composer's "/" offer the same list.

// Keys that work on the whole page. On a Mac, ⌘ takes the place of Ctrl, because Ctrl+K and Ctrl+B edit text there.

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Returns keys in the notation of the user's platform: "Ctrl+K" and "Ctrl K" become "⌘K" on a Mac. */
export const keyLabel = (keys) => (isMac ? keys.replace(/Ctrl[+ ]/, "⌘").replace("Alt+", "⌥") : keys);

/** Returns whether Ctrl (⌘) is pressed, and no other modifier except Shift. */
export const hasControl = (event) =>
  (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey) && !event.altKey;

/** Returns whether Alt with an arrow key moves the caret in the event's field: on a Mac it does, by paragraphs. */
export const movesCaret = ({ target }) => isMac && target.matches?.("textarea") && target.value !== "";

/** Returns whether a modal dialog is open. Keys then do not apply to the page. */
export const isDialogOpen = () => document.querySelector("dialog:modal") !== null;

/**
 * Matches narrow screens, on which the session list and the panel cover the page. Style sheets repeat the condition.
 */
export const PHONE = matchMedia("(width < 760px)");

/**
 * Matches devices whose on-screen keyboard covers half the page and has no Shift+Enter. Style sheets repeat the
 * condition. It is not about hovering, because Samsung's phones claim that they can hover.
 */
export const TOUCH = matchMedia("(pointer: coarse)");

// Clicks on buttons. One listener for the whole page calls the handler of the button's data-action.

const handlers = new Map();

/** Calls `handler(button, event)` for clicks on buttons with this data-action. */
export function onAction(action, handler) {
  if (handlers.has(action)) throw new Error(`Two handlers for ${action}`);
  handlers.set(action, handler);
}

export function connect() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-action]");
    if (button && !button.disabled) handlers.get(button.dataset.action)?.(button, event);
  });
}

/** Makes early.js replay earlier clicks, because the page handles clicks now. Waits until htmx is ready, too. */
export function reportReady() {
  setTimeout(() => document.dispatchEvent(new Event("parley:ready")));
}

const commands = new Map();
const DANGEROUS = ["delete", "leave"];
// The most important commands, which come first. The others follow in the order in which they were added.
const MOST_IMPORTANT = [
  "new",
  "stop",
  "find",
  "share",
  "rename",
  "agent",
  "model",
  "panel",
  "system-prompt",
  "attach",
  "fork",
];

/**
 * Adds a command. `label` is its name in the user's language, `keywords` are other names for it, `icon` is a name
 * in icons.svg, `keys` its shortcut ("Ctrl+K"), and `slash` its name after a "/". `run(argument)` runs it with the text
 * after that name, and returns false if it cannot use the text. `can()` returns whether the command is available now.
 * `choices()` returns the possible arguments as {label, detail, argument}, or a promise for them. Without `takesText`,
 * the name with a text after it is a message and not a command.
 */
export function addCommand({
  id,
  label,
  keywords = "",
  icon,
  keys = "",
  slash = "",
  run,
  can = () => true,
  choices = null,
  takesText = choices !== null,
}) {
  commands.set(id, { id, label, keywords, icon, keys: keyLabel(keys), slash, run, can, choices, takesText });
}

/** Returns the commands that are available now, the most important first. */
export const availableCommands = () => {
  const first = MOST_IMPORTANT.map((id) => commands.get(id)).filter(Boolean);
  return [...new Set([...first, ...commands.values()])].filter((command) => command.can());
};

/** Returns the commands with these ids that are available now, as items of a menu. */
export function menuItems(ids) {
  const now = new Map(availableCommands().map((command) => [command.id, command]));
  const item = ({ label, icon, keys, run }) => ({ label, icon, keys, run: () => run("") });
  return ids.filter((id) => now.has(id)).map((id) => ({ ...item(now.get(id)), danger: DANGEROUS.includes(id) }));
}

/** Returns the command with this name after a "/", even if it is not available now. */
export const commandBySlash = (slash) => [...commands.values()].find((command) => command.slash === slash);
