// Menus: a list of things to do beside what they are about.
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

// One line of a list of suggestions.

/** Draws an item of a source (completion.js); `number` is its place. */
export function drawOption(item, number) {
  const option = document.createElement("li");
  option.id = `completion-${number}`;
  option.role = "option";
  option.ariaSelected = "false";
  option.append(item.face ?? icon(item.icon ?? ""), wordedOption("option-label", item.label), wordedOption("option-detail", item.detail));
  return option;
}

function wordedOption(name, text = "") {
  const span = document.createElement("span");
  span.className = name;
  span.dir = "auto";
  span.textContent = text;
  return span;
}

// Going to the next of some things by the first letters of its name.

const PAUSE = 600;

/** Makes a finder: `find(letter, all, present)` is what begins with the letters so far; the same letter again goes on. */
export function typeahead(nameOf) {
  let written = "";
  let timer = 0;
  return (letter, all, present) => {
    clearTimeout(timer);
    timer = setTimeout(() => (written = ""), PAUSE);
    written = written === letter ? letter : written + letter;
    const after = written.length > 1 ? present : present + 1;
    const order = [...all.slice(after), ...all.slice(0, after)];
    return order.find((each) => nameOf(each).toLocaleLowerCase().startsWith(written.toLocaleLowerCase()));
  };
}

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
