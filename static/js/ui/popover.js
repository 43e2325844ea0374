// What opens beside its anchor, one at a time: menus and boxes. On phones it is a sheet at the bottom of the screen.
import { make } from "./dom.js";
import { composing } from "./field.js";

const SHEET = matchMedia("(width < 760px) and (pointer: coarse)"); // menu.css says the same
const GAP = 4;
const MARGIN = 8;
let open = null; // {anchor, element, back}
let presses = 0;

/** Shows an element at its anchor, which gets the focus back. Where it was open already it closes; false then. */
export function show(element, anchor) {
  const wasOpen = open?.anchor === anchor;
  close();
  if (wasOpen) return false;
  // Not an automatic one: that goes with the very click, or the end of the long press, that has opened it.
  element.popover = "manual";
  (anchor.closest("dialog[open], main, nav, aside") ?? document.body).append(element);
  element.showPopover();
  open = { anchor, element, back: wayBack() };
  place();
  return true;
}

/** Opens an empty box at its button and returns it; null where it was open already. */
export function openBox(anchor, { className, label }) {
  const box = make("div", { className: `popover ${className}`, tabIndex: -1, role: "dialog", ariaLabel: label });
  return show(box, anchor) ? box : null;
}

/** Resolves to what has come for a box; to undefined when a press or key came first, which its opening would undo. */
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

/** Puts what is open below its anchor and from its start; above it, or from its end, where there is more room. */
export function place() {
  if (!open) return;
  const { anchor, element } = open;
  if (anchor.tagName === "BUTTON") anchor.setAttribute("aria-expanded", "true"); // also when it has been drawn anew
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

/** Takes the click away that belongs to the present press. */
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

/** The button of a phone that leads back closes a sheet, and leaves the page where it is. */
function wayBack() {
  if (!globalThis.CloseWatcher) return null;
  const watcher = new CloseWatcher();
  watcher.onclose = close;
  return watcher;
}

const isOurs = (node) => open.element.contains(node) || (open.anchor.tagName === "BUTTON" && open.anchor.contains(node));

/** A press beside it closes it; what stands under a sheet is not pressed by that. */
function pressed({ target }) {
  if (!open || isOurs(target)) return;
  if (SHEET.matches) swallowClick();
  close();
}

/** Escape is for what is on top, wherever the focus is. */
function escaped(event) {
  if (!open || event.key !== "Escape" || composing(event)) return;
  event.preventDefault();
  event.stopPropagation();
  close();
}

export function connect() {
  for (const press of ["pointerdown", "keydown"]) addEventListener(press, () => presses++, { capture: true });
  addEventListener("pointerdown", pressed, { capture: true });
  addEventListener("keydown", escaped, { capture: true });
  addEventListener("focusin", ({ target }) => open && !isOurs(target) && close());
  addEventListener("resize", place);
}
