// Menus: a list of things to do beside what they are about.
import { icon, make } from "./dom.js";
import { ARROWS, ENDS, rove } from "./options.js";
import { close, show } from "./popover.js";

/**
 * Opens a menu at an element, which gets the focus back when it closes. An item is {label, icon, keys, run, danger,
 * checked, disabled, unread} or {separator: true}; `checked` (true or false) makes it a choice, `keys` tells the shortcut,
 * `unread` marks it with these words.
 * With its menu already open, the anchor closes it.
 */
export function openMenu(anchor, items, { label }) {
  const choices = items.filter((item) => item.checked !== undefined).length;
  const drawn = items.map((item) => draw(item, choices > 1 ? "menuitemradio" : "menuitemcheckbox"));
  const element = make("div", { className: "menu", role: "menu", ariaLabel: label }, ...drawn);
  element.addEventListener("keydown", left);
  rove(element, ".menu-item", { keys: { ...ARROWS, ...ENDS }, nameOf: (item) => item.textContent });
  if (show(element, anchor)) element.querySelector(".menu-item")?.focus({ preventScroll: true });
}

function draw(item, choice) {
  if (item.separator) return make("hr", { role: "separator" });
  const role = item.checked === undefined ? { role: "menuitem" } : { role: choice, ariaChecked: String(item.checked) };
  const button = make("button", { type: "button", tabIndex: -1, className: item.danger ? "menu-item danger" : "menu-item", ...role });
  if (item.disabled) button.ariaDisabled = "true";
  const label = make("span", { className: "menu-label", dir: "auto", textContent: item.label ?? "" });
  const keys = make("span", { className: "menu-keys", ariaHidden: "true", textContent: item.keys ?? "" });
  button.append(icon(item.checked ? "check" : item.icon ?? ""), label, item.unread ? mark(item.unread) : keys);
  button.addEventListener("click", () => item.disabled || choose(item));
  button.addEventListener("pointermove", ({ pointerType }) => pointerType === "mouse" && button.focus({ preventScroll: true }));
  return button;
}

function mark(said) {
  return make("span", { className: "unread", title: said }, make("span", { className: "sr-only", textContent: ` · ${said}` }));
}

/** The focus goes back first: what is done may take it elsewhere. */
function choose(item) {
  close();
  item.run();
}

/** Tab leaves a menu, to where it was opened. */
function left(event) {
  if (event.key !== "Tab") return;
  close();
  event.preventDefault();
  event.stopPropagation();
}
