// Suggestions while somebody writes: arrows choose, Enter or Tab takes, Escape closes.
//
// A source knows `at(text, caret)` → {from, query} where it has something to say, `find(query)` → items or a promise of
// them, and `take(item, range, key)`, which returns true when nothing is to be suggested for what stands there now.
// Where it `waits(query)`, nothing is chosen until somebody chooses. An item is {label, detail, icon} or has a `face` in the place of the icon.
import { valueAt } from "../net/http.js";
import { named, offered } from "../ui/commands.js";
import { icon, make } from "../ui/dom.js";
import { composing, field, insert, write } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { notice, say } from "../ui/notice.js";
import { Options } from "../ui/options.js";

// Commands: what a message that begins with "/" does instead of being sent.

/** Suggests the commands, then what one of them may be given. */
export const commandSource = {
  at(text, caret) {
    const found = caret === text.length && /^\/(?:(\S+) +)?([^\n]*)$/.exec(text);
    if (!found || (!found[1] && /[\s/]/.test(found[2]))) return null;
    return { from: 0, query: { name: found[1] ?? "", words: found[2].toLowerCase() } };
  },
  waits: ({ name, words: written }) => !name && !written, // a stray Enter must not do whatever comes first
  find: ({ name, words: written }) => (name ? choices(name, written) : commands(written)),
  take(item, _range, key) {
    if (item.argument !== undefined) obey(item.deed, item.argument);
    else if (key === "Tab" || item.deed.choices) write(`/${item.deed.slash} `);
    else obey(item.deed, "");
  },
};

/** Does what a text asks for if it is a command; true when it is one, whatever came of it. */
export function commanded(text) {
  const [, name, argument = ""] = /^\/(\S+)(?: +([^\n]*))?$/.exec(text.trimEnd()) ?? [];
  const deed = name && named(name.toLowerCase());
  if (deed) obey(deed, argument, text);
  return Boolean(deed);
}

/** A text as it is to be sent: a second slash keeps what begins like a command from being one. */
export function said(text) {
  const [, name] = /^\/\/(\S+)/.exec(text) ?? [];
  return name && named(name.toLowerCase()) ? text.slice(1) : text;
}

async function obey(deed, argument, text = "") {
  if (!deed.can()) return notice(fill(words.notNow, { command: `/${deed.slash}` }));
  write("");
  // What was written comes back when nothing could be made of it.
  if ((await deed.run(argument)) === false && text) write(text);
}

function commands(written) {
  const all = offered().filter(({ slash }) => slash);
  const first = all.filter(({ slash }) => slash.startsWith(written));
  const also = all.filter((deed) => !first.includes(deed) && written && namesOf(deed).includes(written));
  return [...first, ...also].map((deed) => ({ label: `/${deed.slash}`, detail: deed.label, icon: deed.icon, deed }));
}

const namesOf = ({ label, words: more }) => `${label} ${more}`.toLowerCase();

async function choices(name, written) {
  const deed = named(name.toLowerCase());
  if (!deed?.choices || !deed.can()) return [];
  const fitting = (await deed.choices()).filter(({ label }) => label.toLowerCase().includes(written));
  return fitting.map((choice) => ({ icon: deed.icon, ...choice, deed }));
}

// "@" and a name: completing the names of those who are in the session.

const FRESH = 60_000;
const page = document.getElementById("main");
let people = null; // a promise
let askedAt = 0;

/** Suggests people, oneself left out. */
export const mentionSource = {
  at(text, caret) {
    const found = /(?:^|[\s(])@([^@\n]{0,40})$/u.exec(text.slice(0, caret));
    return found && { from: caret - found[1].length - 1, query: found[1].toLowerCase() };
  },
  async find(query) {
    const others = (await known()).filter(({ id }) => String(id) !== page.dataset.viewerId);
    return others.filter((person) => fits(person, query)).map(suggestion);
  },
  take({ label }, { from, to }) {
    insert(`@${label} `, from, to);
    return true;
  },
};

function fits({ name, username }, query) {
  if (!query) return true;
  return [name, username, ...name.split(/\s+/)].some((word) => word.toLowerCase().startsWith(query));
}

function suggestion({ id, name, username, initials, colour }) {
  const face = make("span", {
    className: `face small ${colour}`,
    data: { person: id },
    ariaHidden: "true",
    textContent: initials,
  });
  return { label: name, detail: username, face };
}

function known() {
  if (people && Date.now() - askedAt < FRESH) return people;
  askedAt = Date.now();
  people = valueAt(`/sessions/${page.dataset.session}/people`).then((list) => list?.people ?? []);
  return people;
}

const MOST = 50;
const list = document.getElementById("completion");
let sources = [];
let options = null; // is there where somebody can write
let open = null; // {source, range}
let asked = 0;
let shown = 0; // the question that the list answers; keys are not for an older one
let dismissed = "";

export function connectCompletion(...given) {
  sources = given;
  options = new Options(field, () => [...list.children], take, { takes: ["Enter", "Tab"] });
  field.addEventListener("input", look);
  field.addEventListener("click", look);
  field.addEventListener("blur", close);
  field.setAttribute("aria-controls", list.id);
  // A press must not take the focus out of the field.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener(
    "click",
    (event) => event.target.closest("[role=option]") && take(event.target.closest("[role=option]"), event),
  );
}

/** Does what a key does to the open list; true when the key was for it. */
export function chosen(event) {
  if (event.key === "Tab" && event.shiftKey) close(); // the way back does not lead through the list
  if (!open || shown !== asked || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
  if (event.key !== "Escape" || composing(event)) return options.pressed(event);
  dismissed = field.value;
  close();
  return true;
}

async function look() {
  const number = ++asked;
  const [source, range] = matched();
  const items = source ? await source.find(range.query) : [];
  if (number !== asked) return;
  if (items.length && field.value !== dismissed && document.activeElement === field)
    show(source, range, items.slice(0, MOST));
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
  open = { source, range };
  shown = asked;
  list.replaceChildren(...items.map(draw));
  list.hidden = false;
  options.show(source.waits?.(range.query) ? null : list.firstElementChild);
}

function draw(item, number) {
  const texts = [
    ["option-label", item.label],
    ["option-detail", item.detail],
  ];
  const spans = texts.map(([className, textContent = ""]) => make("span", { className, dir: "auto", textContent }));
  const shown = [item.face ?? icon(item.icon ?? ""), ...spans];
  return make("li", { id: `completion-${number}`, role: "option", ariaSelected: "false", item }, ...shown);
}

function close() {
  asked += 1;
  open = null;
  list.hidden = true;
  options.show(null);
}

function take({ item }, { key = "Enter" }) {
  const { source, range } = open;
  close();
  if (source.take(item, range, key)) dismissed = field.value;
}
