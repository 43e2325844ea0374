// Popovers beside an anchor, one at a time: boxes and menus. On phones they are sheets at the bottom.
import { icon, make } from "./dom.js";
import { composing } from "./field.js";
import { ARROWS, ENDS, rove } from "./options.js";

const SHEET = matchMedia("(width < 760px) and (pointer: coarse)"); // the same condition as in menu.css
const GAP = 4;
const MARGIN = 8;
const MOVED = 10;
let open = null; // {anchor, element, back}
let presses = 0;

/** Opens an element at its anchor, which gets the focus when it closes. If it is open, closes it and returns false. */
export function show(element, anchor) {
  const wasOpen = open?.anchor === anchor;
  close();
  if (wasOpen) return false;
  // Not "auto": the click, or the end of the long press, that opens it would close it again.
  element.popover = "manual";
  (anchor.closest("dialog[open], main, nav, aside") ?? document.body).append(element);
  element.showPopover();
  open = { anchor, element, back: wayBack() };
  place();
  return true;
}

/** Opens an empty box at its button and returns it; returns null if it was open and is closed now. */
export function openBox(anchor, { className, label }) {
  const box = make("div", { className: `popover ${className}`, tabIndex: -1, role: "dialog", ariaLabel: label });
  return show(box, anchor) ? box : null;
}

/** Resolves to `coming`, or to undefined if the user has pressed a button or key since: opening would override that. */
export async function unlessOvertaken(coming) {
  const before = presses;
  const content = await coming;
  return before === presses ? content : undefined;
}

export function close() {
  if (!open) return;
  const { anchor, element, back } = open;
  open = null;
  const lost = document.activeElement === document.body || element.contains(document.activeElement);
  if (anchor.tagName === "BUTTON") anchor.setAttribute("aria-expanded", "false");
  back?.destroy();
  element.remove();
  if (lost) (anchor.isConnected ? anchor : document.getElementById("main")).focus({ preventScroll: true });
}

/** Places the open box below its anchor, aligned with its start; above it, or with its end, if there is more room. */
export function place() {
  if (!open) return;
  const { anchor, element } = open;
  if (anchor.tagName === "BUTTON") anchor.setAttribute("aria-expanded", "true"); // also after a new rendering
  if (SHEET.matches) return element.removeAttribute("style");
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = element;
  const isRtl = getComputedStyle(anchor).direction === "rtl";
  const fits = isRtl ? at.right - width >= MARGIN : at.left + width <= innerWidth - MARGIN;
  const left = fits === isRtl ? at.right - width : at.left;
  const below = at.bottom + GAP;
  const top = below + height <= innerHeight - MARGIN ? below : at.top - GAP - height;
  element.style.left = `${clamp(left, innerWidth - width)}px`;
  element.style.top = `${clamp(top, innerHeight - height)}px`;
}

const clamp = (value, most) => Math.max(MARGIN, Math.min(value, most - MARGIN));

/** Suppresses the click that follows the present press. */
export function swallowClick() {
  const life = new AbortController();
  const swallow = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  addEventListener("click", swallow, { capture: true, signal: life.signal });
  // Deferred: the press that is being handled is not yet the next one.
  setTimeout(() => addEventListener("pointerdown", () => life.abort(), { capture: true, signal: life.signal }));
}

/**
 * Calls back when the finger of a `pointerdown` has rested for so many ms. Moving, scrolling, and events named in
 * `stops` cancel the long press.
 */
export function whenHeld({ clientX, clientY }, ms, callback, stops = []) {
  const life = new AbortController();
  const stop = () => life.abort();
  const far = (event) => Math.hypot(event.clientX - clientX, event.clientY - clientY) > MOVED && stop();
  const timer = setTimeout(() => {
    stop();
    callback();
  }, ms);
  life.signal.addEventListener("abort", () => clearTimeout(timer));
  for (const name of ["pointerup", "pointercancel", "scroll", ...stops])
    addEventListener(name, stop, { capture: true, signal: life.signal });
  addEventListener("pointermove", far, { signal: life.signal });
}

/** On phones the Back button closes a sheet and stays on the page. */
function wayBack() {
  if (!globalThis.CloseWatcher) return null;
  const watcher = new CloseWatcher();
  watcher.onclose = close;
  return watcher;
}

const isOurs = (node) =>
  open.element.contains(node) || (open.anchor.tagName === "BUTTON" && open.anchor.contains(node));

/** A press outside closes it; under a sheet that press does nothing else. */
function pressed({ target }) {
  if (!open || isOurs(target)) return;
  if (SHEET.matches) swallowClick();
  close();
}

/** Escape closes the topmost box, wherever the focus is. */
function escaped(event) {
  if (!open || event.key !== "Escape" || composing(event)) return;
  event.preventDefault();
  event.stopPropagation();
  close();
}

// Menus.

/**
 * Opens a menu at an element, which gets the focus back when it closes; with its menu already open, the anchor closes it.
 * `groups` of items have a line between them, and `headings`, if there are any; empty groups are left out. An item is {label, icon, keys, run, danger,
 * checked, disabled, unread}; `checked` (true or false) makes it a choice, `keys` is its shortcut, `unread` the label
 * of its mark.
 */
export function openMenu(anchor, groups, { label, headings = [] }) {
  const choices = groups.flat().filter((item) => item.checked !== undefined).length;
  const role = choices > 1 ? "menuitemradio" : "menuitemcheckbox";
  const parts = groups
    .map((group, at) =>
      grouped(
        group.map((item) => draw(item, role)),
        headings[at],
      ),
    )
    .filter((part) => part.length);
  const drawn = parts.flatMap((part, at) => (at ? [make("hr", { role: "separator" }), ...part] : part));
  const element = make("div", { className: "menu", role: "menu", ariaLabel: label }, ...drawn);
  element.addEventListener("keydown", left);
  rove(element, ".menu-item", { keys: { ...ARROWS, ...ENDS }, nameOf: (item) => item.textContent });
  if (show(element, anchor)) element.querySelector(".menu-item")?.focus({ preventScroll: true });
}

/** Returns the items of a group, below its heading if it has one. */
function grouped(items, heading) {
  if (!heading || !items.length) return items;
  const shown = make("p", { className: "menu-heading", ariaHidden: "true", textContent: heading });
  return [make("div", { role: "group", ariaLabel: heading }, shown, ...items)];
}

function draw(item, choice) {
  const role = item.checked === undefined ? { role: "menuitem" } : { role: choice, ariaChecked: String(item.checked) };
  const button = make("button", {
    type: "button",
    tabIndex: -1,
    className: item.danger ? "menu-item danger" : "menu-item",
    ...role,
  });
  if (item.disabled) button.ariaDisabled = "true";
  const label = make("span", { className: "menu-label", dir: "auto", textContent: item.label ?? "" });
  const keys = make("span", { className: "menu-keys", ariaHidden: "true", textContent: item.keys ?? "" });
  button.append(icon(item.checked ? "check" : (item.icon ?? "")), label, item.unread ? mark(item.unread) : keys);
  button.addEventListener("click", () => item.disabled || choose(item));
  button.addEventListener(
    "pointermove",
    ({ pointerType }) => pointerType === "mouse" && button.focus({ preventScroll: true }),
  );
  return button;
}

function mark(said) {
  return make(
    "span",
    { className: "unread", title: said },
    make("span", { className: "sr-only", textContent: ` · ${said}` }),
  );
}

/** Returns the focus first: the action may move it elsewhere. */
function choose(item) {
  close();
  item.run();
}

/** Tab closes a menu and returns the focus. */
function left(event) {
  if (event.key !== "Tab") return;
  close();
  event.preventDefault();
  event.stopPropagation();
}

export function connect() {
  for (const press of ["pointerdown", "keydown"]) addEventListener(press, () => presses++, { capture: true });
  addEventListener("pointerdown", pressed, { capture: true });
  addEventListener("keydown", escaped, { capture: true });
  addEventListener("focusin", ({ target }) => open && !isOurs(target) && close());
  addEventListener("resize", place);
}
