// Keyboard navigation of lists. Either the focus stays and names the active option, or it moves with it.
import { composing } from "./field.js";

const PAGE = 8;
const PAUSE = 600;

export const ARROWS = { ArrowDown: "next", ArrowUp: "previous" };
export const PAGES = { ...ARROWS, PageDown: "pageOn", PageUp: "pageBack" };
export const ENDS = { Home: "first", End: "last" };

/** Returns the keys for next and previous in an element's reading direction. */
export function sideways(element) {
  const [next, previous] =
    getComputedStyle(element).direction === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
  return { [next]: "next", [previous]: "previous" };
}

/** Returns the item that a key leads to, if any: arrows wrap around, page keys stop at the ends. */
export function reached({ key }, keys, all, present) {
  const at = all.indexOf(present);
  const last = all.length - 1;
  const places = {
    next: at < last ? at + 1 : 0,
    previous: at > 0 ? at - 1 : last,
    pageOn: Math.min(at + PAGE, last),
    pageBack: Math.max(at - PAGE, 0),
    first: 0,
    last,
  };
  return all[places[keys[key]]];
}

/** Creates a type-ahead: `find(letter, all, present)` finds by the letters so far; repeating one letter cycles. */
function typeahead(nameOf) {
  let written = "";
  let timer = 0;
  return (letter, all, present) => {
    clearTimeout(timer);
    timer = setTimeout(() => (written = ""), PAUSE);
    written = written === letter ? letter : written + letter;
    const at = all.indexOf(present);
    const after = written.length > 1 ? at : at + 1;
    const order = [...all.slice(after), ...all.slice(0, after)];
    return order.find((each) => nameOf(each).toLocaleLowerCase().startsWith(written.toLocaleLowerCase()));
  };
}

const isLetter = ({ key, ctrlKey, metaKey }) => key.length === 1 && key !== " " && !ctrlKey && !metaKey;

/** Creates `reached` for a list with type-ahead by `nameOf`; other letters do nothing. */
function wayBy(keys, nameOf) {
  const typed = nameOf && typeahead(nameOf);
  return (event, all, present) => {
    if (typed && isLetter(event)) return typed(event.key, all, present) ?? present;
    return reached(event, keys, all, present);
  };
}

/** Options with one active, while the focus stays on their `holder`: a field, or the list itself. */
export class Options {
  active = null;
  #holder;
  #all;
  #take;
  #way;
  #takes;
  #mark;

  /**
   * `all()` lists them; a key of `takes` calls `take(option, event)` with the active one. `mark(option, isActive)` shows
   * which one is active.
   */
  constructor(holder, all, take, { keys = ARROWS, nameOf = null, takes = ["Enter"], mark = select } = {}) {
    this.#holder = holder;
    this.#all = all;
    this.#take = take;
    this.#way = wayBy(keys, nameOf);
    this.#takes = takes;
    this.#mark = mark;
  }

  /** Makes an option the active one; null makes none active. */
  show(option, { scroll = true } = {}) {
    if (this.active) this.#mark(this.active, false);
    this.active = option;
    if (!option) return this.#holder.removeAttribute("aria-activedescendant");
    this.#mark(option, true);
    this.#holder.setAttribute("aria-activedescendant", option.id);
    if (scroll) option.scrollIntoView({ block: "nearest" });
  }

  /** Handles a key; returns true if it was for the list, as Enter always is. */
  pressed(event) {
    if (composing(event)) return false;
    const next = this.#way(event, this.#all(), this.active);
    if (next) this.show(next);
    else if (this.active && this.#takes.includes(event.key)) this.#take(this.active, event);
    else return event.key === "Enter";
    return true;
  }

  /** Makes the option under the pointer active, and takes the one that is clicked. */
  followPointer(list) {
    const at = ({ target }) => target.closest("[role=option]");
    list.addEventListener(
      "pointermove",
      (event) => ![null, this.active].includes(at(event)) && this.show(at(event), { scroll: false }),
    );
    list.addEventListener("click", (event) => at(event) && this.#take(at(event), event));
  }
}

const select = (option, isActive) => (option.ariaSelected = String(isActive));

/** Moves the focus among items by keys (roving tabindex). `go` moves it to an item. */
export function rove(element, selector, { keys, nameOf = null, go = (item) => item.focus() }) {
  const way = wayBy(keys, nameOf);
  const items = () => [...element.querySelectorAll(selector)];
  element.addEventListener("keydown", (event) => {
    const next = way(event, items(), document.activeElement);
    if (!next) return;
    go(next);
    event.preventDefault();
    event.stopPropagation();
  });
  element.addEventListener("focusin", ({ target }) => {
    for (const item of items()) item.tabIndex = item === target ? 0 : -1;
  });
}
