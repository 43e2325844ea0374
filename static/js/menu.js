// Menus: a list of things to do beside what they are about.
import { icon } from "./icons.js";
import { close, show } from "./popover.js";
import { typeahead } from "./typeahead.js";

const typed = typeahead((item) => item.textContent);

/**
 * Opens a menu at an element, which gets the focus back when it closes. An item is {label, icon, keys, run, danger,
 * checked, disabled, unread} or {separator: true}; `checked` (true or false) makes it a choice, `keys` tells the shortcut,
 * `unread` marks it with these words.
 * With its menu already open, the anchor closes it.
 */
export function openMenu(anchor, items, { label }) {
  const element = document.createElement("div");
  element.className = "menu";
  element.setAttribute("role", "menu");
  element.setAttribute("aria-label", label);
  const choices = items.filter((item) => item.checked !== undefined).length;
  element.append(...items.map((item) => draw(item, choices > 1 ? "menuitemradio" : "menuitemcheckbox")));
  element.addEventListener("keydown", keys);
  element.addEventListener("focusin", rove);
  if (show(element, anchor)) itemsOf(element)[0]?.focus({ preventScroll: true });
}

function draw(item, choice) {
  if (item.separator) return Object.assign(document.createElement("hr"), { role: "separator" });
  const button = document.createElement("button");
  button.type = "button";
  button.tabIndex = -1;
  button.className = item.danger ? "menu-item danger" : "menu-item";
  button.setAttribute("role", item.checked === undefined ? "menuitem" : choice);
  if (item.checked !== undefined) button.setAttribute("aria-checked", String(item.checked));
  if (item.disabled) button.setAttribute("aria-disabled", "true");
  button.append(icon(item.checked ? "check" : item.icon ?? ""), worded("menu-label", item.label), item.unread ? mark(item.unread) : worded("menu-keys", item.keys));
  button.addEventListener("click", () => item.disabled || choose(item));
  button.addEventListener("pointermove", ({ pointerType }) => pointerType === "mouse" && button.focus({ preventScroll: true }));
  return button;
}

function worded(name, text = "") {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = text;
  if (name === "menu-keys") span.ariaHidden = "true";
  else span.dir = "auto";
  return span;
}

function mark(said) {
  const dot = Object.assign(document.createElement("span"), { className: "unread", title: said });
  dot.append(Object.assign(document.createElement("span"), { className: "sr-only", textContent: ` · ${said}` }));
  return dot;
}

/** The focus goes back first: what is done may take it elsewhere. */
function choose(item) {
  close();
  item.run();
}

const itemsOf = (element) => [...element.querySelectorAll(".menu-item")];

function keys(event) {
  const all = itemsOf(event.currentTarget);
  const present = all.indexOf(document.activeElement);
  const next = { ArrowDown: present + 1, ArrowUp: present - 1, Home: 0, End: -1 }[event.key];
  if (next !== undefined) all.at(next % all.length)?.focus();
  else if (event.key === "Tab") close();
  else if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey) typed(event.key, all, present)?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** The one with the focus is the one that Tab knows; by it a long menu is one that can be scrolled by keys. */
function rove({ currentTarget, target }) {
  for (const item of itemsOf(currentTarget)) item.tabIndex = item === target ? 0 : -1;
}
