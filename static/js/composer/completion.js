// Suggestions while the user types: arrows choose, Enter or Tab accepts, Escape closes.
//
// A source has `at(text, caret)` → {from, query} or null, `find(query)` → items or a promise of
// them, and `take(item, range, key)`, which returns true if the new text needs no suggestions.
// If it `waits(query)`, no item is active until the user chooses one. An item is {label, detail, icon}, or has a
// `face` instead of an icon.
import { valueAt } from "../net/http.js";
import { named, offered } from "../ui/commands.js";
import { icon, make } from "../ui/dom.js";
import { composing, field, insert, write } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { notice, say } from "../ui/notice.js";
import { Options } from "../ui/options.js";

// Commands: a text that starts with "/" is carried out instead of being sent.

/** Suggests commands, then the arguments of one. */
export const commandSource = {
  at(text, caret) {
    const found = caret === text.length && /^\/(?:(\S+) +)?([^\n]*)$/.exec(text);
    if (!found || (!found[1] && /[\s/]/.test(found[2]))) return null;
    return { from: 0, query: { name: found[1] ?? "", words: found[2].toLowerCase() } };
  },
  waits: ({ name, words: written }) => !name && !written, // a stray Enter must not run the first command
  find: ({ name, words: written }) => (name ? choices(name, written) : commands(written)),
  take(item, _range, key) {
    if (item.argument !== undefined) obey(item.slashCommand, item.argument);
    else if (key === "Tab" || item.slashCommand.choices) write(`/${item.slashCommand.slash} `);
    else obey(item.slashCommand, "");
  },
};

/** Runs a text that is a command; returns whether it was one. */
export function commanded(text) {
  const [, name, argument = ""] = /^\/(\S+)(?: +([^\n]*))?$/.exec(text.trimEnd()) ?? [];
  const slashCommand = name && named(name.toLowerCase());
  if (slashCommand) obey(slashCommand, argument, text);
  return Boolean(slashCommand);
}

/** Returns the text to send: a second slash at the start escapes the first. */
export function said(text) {
  const [, name] = /^\/\/(\S+)/.exec(text) ?? [];
  return name && named(name.toLowerCase()) ? text.slice(1) : text;
}

async function obey(slashCommand, argument, text = "") {
  if (!slashCommand.can()) return notice(fill(words.notNow, { command: `/${slashCommand.slash}` }));
  write("");
  // Restore the text if the command could not use it.
  if ((await slashCommand.run(argument)) === false && text) write(text);
}

function commands(written) {
  const all = offered().filter(({ slash }) => slash);
  const first = all.filter(({ slash }) => slash.startsWith(written));
  const also = all.filter(
    (slashCommand) => !first.includes(slashCommand) && written && namesOf(slashCommand).includes(written),
  );
  return [...first, ...also].map((slashCommand) => ({
    label: `/${slashCommand.slash}`,
    detail: slashCommand.label,
    icon: slashCommand.icon,
    slashCommand,
  }));
}

const namesOf = ({ label, words: more }) => `${label} ${more}`.toLowerCase();

async function choices(name, written) {
  const slashCommand = named(name.toLowerCase());
  if (!slashCommand?.choices || !slashCommand.can()) return [];
  const fitting = (await slashCommand.choices()).filter(({ label }) => label.toLowerCase().includes(written));
  return fitting.map((choice) => ({ icon: slashCommand.icon, ...choice, slashCommand }));
}

// "@" and a name: completes "agent" and the names of people in the session.

const FRESH = 60_000;
const page = document.getElementById("main");
let names = null; // a promise
let askedAt = 0;

/** Suggests the agent, and people other than the user. */
export const mentionSource = {
  at(text, caret) {
    const found = /(?:^|[\s(])@([^@\n]{0,40})$/u.exec(text.slice(0, caret));
    return found && { from: caret - found[1].length - 1, query: found[1].toLowerCase() };
  },
  async find(query) {
    const cast = JSON.parse(page.dataset.agents || "[]");
    const taken = cast.length ? (await known()).flatMap(({ name, username }) => [name, username]) : [];
    const agents = cast.map((each) => {
      const said = spoken(each, cast, taken); // what the text gets: a title that the server would not read stays out
      return { label: each.title, detail: each.name, said, icon: each.icon || "bot" };
    });
    const agent = { label: "agent", detail: page.dataset.agent, icon: "bot" };
    const several = agents.filter(({ label, detail }) => fits({ name: label, username: detail }, query));
    if (agents.length) return [...several, ...(await persons(query))];
    const people = await persons(query);
    return fits({ name: agent.label, username: agent.detail }, query) ? [agent, ...people] : people;
  },
  take({ label, said = label }, { from, to }) {
    insert(`@${said} `, from, to);
    return true;
  },
};

/**
 * Returns what an agent is called after an "@": its title, unless that is also the name of another one or of a person,
 * or the server would not read all of it as a name; then its name, which is its own but can end in random letters.
 */
function spoken({ name, title }, cast, people) {
  const others = cast.filter((each) => each.name !== name).flatMap((each) => [each.name, each.title]);
  const isTaken = ["agent", ...others, ...people].some((each) => each.toLowerCase() === title.toLowerCase());
  return !isTaken && /^[\p{L}\p{N}](?:[\p{L}\p{N} ._-]*[\p{L}\p{N}])?$/u.test(title) ? title : name;
}

/** Returns suggestions of the people that fit, other than the user. */
async function persons(query) {
  const others = (await known()).filter(({ id }) => String(id) !== page.dataset.viewerId);
  return others.filter((person) => fits(person, query)).map(suggestion);
}

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

const known = async () => (await namesOfSession())?.people ?? [];

/** Requests the people of the session, and the agents that it lacks. */
export function namesOfSession() {
  if (names && Date.now() - askedAt < FRESH) return names;
  askedAt = Date.now();
  names = valueAt(`/sessions/${page.dataset.session}/people`);
  return names;
}

const MOST = 50;
const list = document.getElementById("completion");
let sources = [];
let options = null; // null for viewers
let open = null; // {source, range}
let queries = 0;
let shown = 0; // the number of the query that the list answers; keys do not apply to an older one
let dismissed = "";

export function connectCompletion(...given) {
  sources = given;
  options = new Options(field, () => [...list.children], take, { takes: ["Enter", "Tab"] });
  field.addEventListener("input", look);
  field.addEventListener("click", look);
  field.addEventListener("blur", close);
  field.setAttribute("aria-controls", list.id);
  // A press must not move the focus out of the field.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener(
    "click",
    (event) => event.target.closest("[role=option]") && take(event.target.closest("[role=option]"), event),
  );
}

/** Handles a key for the open list; returns true if it was for the list. */
export function chosen(event) {
  if (event.key === "Tab" && event.shiftKey) close(); // Shift+Tab leaves the field
  if (!open || shown !== queries || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
  if (event.key !== "Escape" || composing(event)) return options.pressed(event);
  dismissed = field.value;
  close();
  return true;
}

async function look() {
  const number = ++queries;
  const [source, range] = matched();
  const items = source ? await source.find(range.query) : [];
  if (number !== queries) return;
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
  shown = queries;
  list.replaceChildren(...items.map(draw));
  setHidden(false);
  options.show(source.waits?.(range.query) ? null : list.firstElementChild);
}

/** Also tells the style sheet, which hides what the list covers in part. */
function setHidden(isHidden) {
  list.hidden = isHidden;
  page.toggleAttribute("data-completing", !isHidden);
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
  queries += 1;
  open = null;
  setHidden(true);
  options.show(null);
}

function take({ item }, { key = "Enter" }) {
  const { source, range } = open;
  close();
  if (source.take(item, range, key)) dismissed = field.value;
}
