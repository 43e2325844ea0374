// Suggestions while somebody writes: arrows choose, Enter or Tab takes, Escape closes.
//
// A source knows `at(text, caret)` → {from, query} where it has something to say, `find(query)` → items or a promise of
// them, and `take(item, range, key)`, which returns true when nothing is to be suggested for what stands there now.
// Where it `waits(query)`, nothing is chosen until somebody chooses. An item is {label, detail, icon} or has a `face` in the place of the icon.
import { composing, field } from "./field.js";
import { drawOption } from "./options.js";
import { say } from "./notice.js";
import { fill, words } from "./words.js";

const MOST = 50;
const list = document.getElementById("completion");
let sources = [];
let open = null; // {source, range, items, active}
let asked = 0;
let shown = 0; // the question that the list answers; keys are not for an older one
let dismissed = "";

export function start(...given) {
  sources = given;
  field.addEventListener("input", look);
  field.addEventListener("click", look);
  field.addEventListener("blur", close);
  field.setAttribute("aria-controls", list.id);
  // A press must not take the focus out of the field.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => pressed(event.target.closest("[role=option]")));
}

/** Does what a key does to the open list; true when the key was for it. */
export function chosen(event) {
  if (event.key === "Tab" && event.shiftKey) close(); // the way back does not lead through the list
  if (!open || shown !== asked || composing(event) || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
  switch (event.key) {
    case "ArrowDown":
      activate((open.active + 1) % open.items.length);
      return true;
    case "ArrowUp":
      activate((Math.max(open.active, 0) + open.items.length - 1) % open.items.length);
      return true;
    case "Enter":
    case "Tab":
      if (open.active < 0) return event.key === "Enter";
      take(open.active, event.key);
      return true;
    case "Escape":
      dismissed = field.value;
      close();
      return true;
  }
  return false;
}

async function look() {
  const number = ++asked;
  const [source, range] = matched();
  const items = source ? await source.find(range.query) : [];
  if (number !== asked) return;
  if (items.length && field.value !== dismissed && document.activeElement === field) show(source, range, items.slice(0, MOST));
  else close();
}

function matched() {
  if (field.selectionStart !== field.selectionEnd) return [];
  for (const source of sources) {
    const range = source.at(field.value, field.selectionStart);
    if (range) return [source, { ...range, to: field.selectionStart }];
  }
  return [];
}

function show(source, range, items) {
  if (!open) say(fill(words.suggestions, { count: items.length }));
  open = { source, range, items, active: -1 };
  shown = asked;
  list.replaceChildren(...items.map(drawOption));
  list.hidden = false;
  field.removeAttribute("aria-activedescendant");
  if (!source.waits?.(range.query)) activate(0);
}

function close() {
  asked += 1;
  open = null;
  list.hidden = true;
  field.removeAttribute("aria-activedescendant");
}

function activate(number) {
  if (open.active >= 0) list.children[open.active].ariaSelected = "false";
  open.active = number;
  const option = list.children[number];
  option.ariaSelected = "true";
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function pressed(option) {
  if (option && open) take([...list.children].indexOf(option), "Enter");
}

function take(number, key) {
  const { source, range, items } = open;
  close();
  if (source.take(items[number], range, key)) dismissed = field.value;
}
