// Keyboard navigation of lists. In an `OptionList` the focus stays on one element, which references the active option.
// With `addRovingFocus` the focus moves among the items.
import { isComposing } from "./field.js";

const PAGE_SIZE = 8;
const TYPEAHEAD_MS = 600;

export const ARROW_KEYS = { ArrowDown: "next", ArrowUp: "previous" };
export const PAGE_KEYS = { ...ARROW_KEYS, PageDown: "pageOn", PageUp: "pageBack" };
export const END_KEYS = { Home: "first", End: "last" };

/** Returns the arrow keys for next and previous in the reading direction of an element. */
export function horizontalKeys(element) {
  const [next, previous] =
    getComputedStyle(element).direction === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
  return { [next]: "next", [previous]: "previous" };
}

/** Returns the item to which a key moves, or undefined. Arrow keys wrap around, and page keys stop at the ends. */
export function itemForKey({ key }, keys, all, current) {
  const index = all.indexOf(current);
  const last = all.length - 1;
  const targets = {
    next: index < last ? index + 1 : 0,
    previous: index > 0 ? index - 1 : last,
    pageOn: Math.min(index + PAGE_SIZE, last),
    pageBack: Math.max(index - PAGE_SIZE, 0),
    first: 0,
    last,
  };
  return all[targets[keys[key]]];
}

/** Returns `find(letter, all, current)`, which finds an item by the letters typed so far. Repeating a letter cycles. */
function typeahead(nameOf) {
  let typed = "";
  let timer = 0;
  return (letter, all, current) => {
    clearTimeout(timer);
    timer = setTimeout(() => (typed = ""), TYPEAHEAD_MS);
    typed = typed === letter ? letter : typed + letter;
    const index = all.indexOf(current);
    const after = typed.length > 1 ? index : index + 1;
    const order = [...all.slice(after), ...all.slice(0, after)];
    return order.find((each) => nameOf(each).toLocaleLowerCase().startsWith(typed.toLocaleLowerCase()));
  };
}

const isLetter = ({ key, ctrlKey, metaKey }) => key.length === 1 && key !== " " && !ctrlKey && !metaKey;

/** Returns a function like `itemForKey` for these keys. If `nameOf` is given, letters find items by their names. */
function createNavigation(keys, nameOf) {
  const typed = nameOf && typeahead(nameOf);
  return (event, all, current) => {
    if (typed && isLetter(event)) return typed(event.key, all, current) ?? current;
    return itemForKey(event, keys, all, current);
  };
}

/** A list of options with an active one. The focus stays on the `holder`: a field, or the list itself. */
export class OptionList {
  active = null;
  #holder;
  #getOptions;
  #choose;
  #navigate;
  #chooseKeys;
  #mark;

  /**
   * `all()` returns the options. A key in `chooseKeys` calls `choose(option, event)` with the active option.
   * `mark(option, isActive)` shows whether an option is active.
   */
  constructor(
    holder,
    all,
    choose,
    { keys = ARROW_KEYS, nameOf = null, chooseKeys = ["Enter"], mark = markSelected } = {},
  ) {
    this.#holder = holder;
    this.#getOptions = all;
    this.#choose = choose;
    this.#navigate = createNavigation(keys, nameOf);
    this.#chooseKeys = chooseKeys;
    this.#mark = mark;
  }

  /** Makes an option the active one, or none for null. */
  activate(option, { scroll = true } = {}) {
    if (this.active) this.#mark(this.active, false);
    this.active = option;
    if (!option) return this.#holder.removeAttribute("aria-activedescendant");
    this.#mark(option, true);
    this.#holder.setAttribute("aria-activedescendant", option.id);
    if (scroll) option.scrollIntoView({ block: "nearest" });
  }

  /** Handles a key. Returns true if the list has used the key. Enter always counts as used. */
  handleKey(event) {
    if (isComposing(event)) return false;
    const next = this.#navigate(event, this.#getOptions(), this.active);
    if (next) this.activate(next);
    else if (this.active && this.#chooseKeys.includes(event.key)) this.#choose(this.active, event);
    else return event.key === "Enter";
    return true;
  }

  /** Makes the option under the pointer active, and calls `choose` for a clicked option. */
  followPointer(list) {
    const at = ({ target }) => target.closest("[role=option]");
    list.addEventListener(
      "pointermove",
      (event) => ![null, this.active].includes(at(event)) && this.activate(at(event), { scroll: false }),
    );
    list.addEventListener("click", (event) => at(event) && this.#choose(at(event), event));
  }
}

const markSelected = (option, isActive) => (option.ariaSelected = String(isActive));

/** Moves the focus among items by keys (roving tabindex). `go` moves it to an item. */
export function addRovingFocus(element, selector, { keys, nameOf = null, go = (item) => item.focus() }) {
  const navigate = createNavigation(keys, nameOf);
  const items = () => [...element.querySelectorAll(selector)];
  element.addEventListener("keydown", (event) => {
    const next = navigate(event, items(), document.activeElement);
    if (!next) return;
    go(next);
    event.preventDefault();
    event.stopPropagation();
  });
  element.addEventListener("focusin", ({ target }) => {
    for (const item of items()) item.tabIndex = item === target ? 0 : -1;
  });
}
