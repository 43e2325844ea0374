// Menus: a list of things to do beside what they are about.
import { ARROWS, ENDS, rove } from "./options.js";
import { close, show } from "./popover.js";

// The icons of icons.svg, for what is drawn in the browser.

const SVG = "http://www.w3.org/2000/svg";

/** An icon by its name; one of no name keeps the place of one. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  if (name) use.setAttribute("href", `${sprite()}#${name}`);
  svg.append(use);
  return svg;
}

// Its address has a hash of its content: any icon that the page was made with knows it.
const sprite = () => document.querySelector("svg.icon use[href]").getAttribute("href").split("#")[0];

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
  element.addEventListener("keydown", left);
  rove(element, ".menu-item", { keys: { ...ARROWS, ...ENDS }, nameOf: (item) => item.textContent });
  if (show(element, anchor)) element.querySelector(".menu-item")?.focus({ preventScroll: true });
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

/** Tab leaves a menu, to where it was opened. */
function left(event) {
  if (event.key !== "Tab") return;
  close();
  event.preventDefault();
  event.stopPropagation();
}
