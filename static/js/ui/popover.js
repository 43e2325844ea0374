// Popovers beside an anchor: boxes and menus. One is open at a time. On phones they are sheets at the bottom.
import { createElement, createIcon } from "./dom.js";
import { isComposing } from "./field.js";
import { addRovingFocus, ARROW_KEYS, END_KEYS } from "./options.js";

const SHEET = matchMedia("(width < 760px) and (pointer: coarse)"); // the same condition as in menu.css
const GAP = 4;
const MARGIN = 8;
const MOVE_TOLERANCE = 10;
let open = null; // {anchor, element, back}
let presses = 0;

/** Opens an element as the popover of an anchor. If that popover is open already, closes it and returns false. */
function showPopover(element, anchor) {
  const wasOpen = open?.anchor === anchor;
  closePopover();
  if (wasOpen) return false;
  // With "auto", the click or the end of the long press that opens the popover would close it again.
  element.popover = "manual";
  (anchor.closest("dialog[open], main, nav, aside") ?? document.body).append(element);
  element.showPopover();
  open = { anchor, element, back: closeOnBack() };
  positionPopover();
  return true;
}

/** Opens an empty box at a button and returns it. If the box is open already, closes it and returns null. */
export function openPopover(anchor, { className, label }) {
  const box = createElement("div", {
    className: `popover ${className}`,
    tabIndex: -1,
    role: "dialog",
    ariaLabel: label,
  });
  return showPopover(box, anchor) ? box : null;
}

/** Returns a function that returns whether the user has pressed a button or key since this call. */
export function watchUser() {
  const before = presses;
  return () => before !== presses;
}

/** Resolves to the value of a promise, or to undefined if the user has pressed a button or key in the meantime. */
export async function unlessUserActed(promise) {
  const hasActed = watchUser();
  const content = await promise;
  return hasActed() ? undefined : content;
}

export function closePopover() {
  if (!open) return;
  const { anchor, element, back } = open;
  open = null;
  const isFocusLost = document.activeElement === document.body || element.contains(document.activeElement);
  if (anchor.tagName === "BUTTON") anchor.setAttribute("aria-expanded", "false");
  back?.destroy();
  element.remove();
  if (isFocusLost) (anchor.isConnected ? anchor : document.getElementById("main")).focus({ preventScroll: true });
}

/** Places the open box below its anchor, aligned with its start, or above it or with its end if there is more room. */
export function positionPopover() {
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

const clamp = (value, limit) => Math.max(MARGIN, Math.min(value, limit - MARGIN));

/** Suppresses the click that follows the present press. */
export function suppressNextClick() {
  const listeners = new AbortController();
  const suppress = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  addEventListener("click", suppress, { capture: true, signal: listeners.signal });
  // Deferred, so that the press that is being handled does not count as the next one.
  setTimeout(() =>
    addEventListener("pointerdown", () => listeners.abort(), { capture: true, signal: listeners.signal }),
  );
}

/**
 * Calls back if the finger stays where it was at the `pointerdown` for `ms` ms. Moving the finger, scrolling, and the
 * events in `stops` cancel the long press.
 */
export function onLongPress({ clientX, clientY }, ms, callback, stops = []) {
  const listeners = new AbortController();
  const stop = () => listeners.abort();
  const stopIfMoved = (event) =>
    Math.hypot(event.clientX - clientX, event.clientY - clientY) > MOVE_TOLERANCE && stop();
  const timer = setTimeout(() => {
    stop();
    callback();
  }, ms);
  listeners.signal.addEventListener("abort", () => clearTimeout(timer));
  for (const name of ["pointerup", "pointercancel", "scroll", ...stops])
    addEventListener(name, stop, { capture: true, signal: listeners.signal });
  addEventListener("pointermove", stopIfMoved, { signal: listeners.signal });
}

/** Makes the Back button of phones close a sheet instead of leaving the page. */
function closeOnBack() {
  if (!globalThis.CloseWatcher) return null;
  const watcher = new CloseWatcher();
  watcher.onclose = closePopover;
  return watcher;
}

const belongsToPopover = (node) =>
  open.element.contains(node) || (open.anchor.tagName === "BUTTON" && open.anchor.contains(node));

/** Closes the popover on a press outside of it. If it is a sheet, the press has no other effect. */
function closeOnOutsidePress({ target }) {
  if (!open || belongsToPopover(target)) return;
  if (SHEET.matches) suppressNextClick();
  closePopover();
}

/** Closes the popover on Escape, wherever the focus is. */
function closeOnEscape(event) {
  if (!open || event.key !== "Escape" || isComposing(event)) return;
  event.preventDefault();
  event.stopPropagation();
  closePopover();
}

// Menus.

/**
 * Opens a menu at an element, which gets the focus back when the menu closes. If the menu is open, closes it. `groups`
 * are lists of items with lines between them, and with optional `headings`. Empty groups are left out. An item is
 * {label, icon, keys, run, danger, checked, disabled, unread}. `checked` (true or false) makes it a choice, `keys` is
 * its shortcut, and `unread` the label of its mark.
 */
export function openMenu(anchor, groups, { label, headings = [] }) {
  const choices = groups.flat().filter((item) => item.checked !== undefined).length;
  const role = choices > 1 ? "menuitemradio" : "menuitemcheckbox";
  const parts = groups
    .map((group, at) =>
      withHeading(
        group.map((item) => createItem(item, role)),
        headings[at],
      ),
    )
    .filter((part) => part.length);
  const items = parts.flatMap((part, at) => (at ? [createElement("hr", { role: "separator" }), ...part] : part));
  const element = createElement("div", { className: "menu", role: "menu", ariaLabel: label }, ...items);
  element.addEventListener("keydown", closeOnTab);
  addRovingFocus(element, ".menu-item", { keys: { ...ARROW_KEYS, ...END_KEYS }, nameOf: (item) => item.textContent });
  if (showPopover(element, anchor)) element.querySelector(".menu-item")?.focus({ preventScroll: true });
}

/** Returns the elements of a group: its items, in an element with a heading if it has one. */
function withHeading(items, heading) {
  if (!heading || !items.length) return items;
  const shown = createElement("p", { className: "menu-heading", ariaHidden: "true", textContent: heading });
  return [createElement("div", { role: "group", ariaLabel: heading }, shown, ...items)];
}

function createItem(item, choice) {
  const role = item.checked === undefined ? { role: "menuitem" } : { role: choice, ariaChecked: String(item.checked) };
  const button = createElement("button", {
    type: "button",
    tabIndex: -1,
    className: item.danger ? "menu-item danger" : "menu-item",
    ...role,
  });
  if (item.disabled) button.ariaDisabled = "true";
  const label = createElement("span", { className: "menu-label", dir: "auto", textContent: item.label ?? "" });
  const keys = createElement("span", { className: "menu-keys", ariaHidden: "true", textContent: item.keys ?? "" });
  button.append(
    createIcon(item.checked ? "check" : (item.icon ?? "")),
    label,
    item.unread ? createUnreadMark(item.unread) : keys,
  );
  button.addEventListener("click", () => item.disabled || runItem(item));
  button.addEventListener(
    "pointermove",
    ({ pointerType }) => pointerType === "mouse" && button.focus({ preventScroll: true }),
  );
  return button;
}

function createUnreadMark(label) {
  return createElement(
    "span",
    { className: "unread", title: label },
    createElement("span", { className: "sr-only", textContent: ` · ${label}` }),
  );
}

/** Closes the menu, which restores the focus, and then runs the item, which may move the focus. */
function runItem(item) {
  closePopover();
  item.run();
}

/** Closes a menu on Tab and restores the focus. */
function closeOnTab(event) {
  if (event.key !== "Tab") return;
  closePopover();
  event.preventDefault();
  event.stopPropagation();
}

/**
 * Closes the popover if another element gets the focus. Safari does not focus a clicked button, but an element around
 * it. The click on the popover's own button would then open the popover again.
 */
function closeOnOutsideFocus({ target }) {
  if (open && !belongsToPopover(target) && !target.contains(open.anchor)) closePopover();
}

export function connect() {
  for (const press of ["pointerdown", "keydown"]) addEventListener(press, () => presses++, { capture: true });
  addEventListener("pointerdown", closeOnOutsidePress, { capture: true });
  addEventListener("keydown", closeOnEscape, { capture: true });
  addEventListener("focusin", closeOnOutsideFocus);
  addEventListener("resize", positionPopover);
}
