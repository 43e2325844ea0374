// Keys that work on the whole page, as this system has them: Ctrl is ⌘ on a Mac, whose Ctrl+K and Ctrl+B edit text.

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Keys as they are told to people: "Ctrl+K" is "⌘K" on a Mac. */
export const shown = (keys) => (isMac ? keys.replace("Ctrl+", "⌘").replace("Alt+", "⌥") : keys);

/** Whether Ctrl (⌘) is held, and no other key of its kind but Shift. */
export const withControl = (event) => (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey) && !event.altKey;

/** Whether the page waits behind a dialog: keys are not for it then. */
export const isBehind = () => document.querySelector("dialog:modal") !== null;

/** Matches where a keyboard comes over half the page, and has no Shift+Enter. */
export const TOUCH = matchMedia("(hover: none) and (pointer: coarse)");
