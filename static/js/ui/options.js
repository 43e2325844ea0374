// Lists that people go through by keys: the focus stays where it is and names the active option, or it goes along.
import { composing } from "./field.js";

const PAGE = 8;
const PAUSE = 600;

export const ARROWS = { ArrowDown: "next", ArrowUp: "previous" };
export const PAGES = { ...ARROWS, PageDown: "pageOn", PageUp: "pageBack" };
export const ENDS = { Home: "first", End: "last" };

/** Left and right, in the direction in which an element is read. */
export function sideways(element) {
  const [next, previous] =
    getComputedStyle(element).direction === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
  return { [next]: "next", [previous]: "previous" };
}

/** What a key leads to from the present one of `all`, if anything: arrows go round, whole pages end at the ends. */
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

/** Makes a finder: `find(letter, all, present)` is what begins with the letters so far; the same letter again goes on. */
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

/** Makes `reached` for a list in which, with `nameOf`, letters lead to what begins with them, or at least nowhere else. */
function wayBy(keys, nameOf) {
  const typed = nameOf && typeahead(nameOf);
  return (event, all, present) => {
    if (typed && isLetter(event)) return typed(event.key, all, present) ?? present;
    return reached(event, keys, all, present);
  };
}

/** Options of which one is active, while the focus stays on their `holder`: a field, or the list itself. */
export class Options {
  active = null;
  #holder;
  #all;
  #take;
  #way;
  #takes;
  #mark;

  /**
   * `all()` lists them; `take(option, event)` does what the active one is for, with a key of `takes`. `mark` shows which
   * one is active.
   */
  constructor(holder, all, take, { keys = ARROWS, nameOf = null, takes = ["Enter"], mark = select } = {}) {
    this.#holder = holder;
    this.#all = all;
    this.#take = take;
    this.#way = wayBy(keys, nameOf);
    this.#takes = takes;
    this.#mark = mark;
  }

  /** Makes an option the active one; with null none is. */
  show(option, { scroll = true } = {}) {
    if (this.active) this.#mark(this.active, false);
    this.active = option;
    if (!option) return this.#holder.removeAttribute("aria-activedescendant");
    this.#mark(option, true);
    this.#holder.setAttribute("aria-activedescendant", option.id);
    if (scroll) option.scrollIntoView({ block: "nearest" });
  }

  /** Does what a key asks for; true when it was for the list, as Enter always is. */
  pressed(event) {
    if (composing(event)) return false;
    const next = this.#way(event, this.#all(), this.active);
    if (next) this.show(next);
    else if (this.active && this.#takes.includes(event.key)) this.#take(this.active, event);
    else return event.key === "Enter";
    return true;
  }

  /** Shows what the pointer is over, and takes what is pressed. */
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

/** Lets keys move the focus among the items of an element; Tab knows only the one that has it. `go` goes to one. */
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
