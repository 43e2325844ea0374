// Suggestions while the user types: arrows choose, Enter or Tab accepts, Escape closes.
//
// A source of suggestions has these functions:
// - `at(text, caret)` returns {from, query} if the source has suggestions there, else null.
// - `find(query)` returns items, or a promise for them. An item is {label, detail, icon}, or has a `face` as its icon.
// - `accept(item, range, key)` inserts an item. It returns true if the list stays closed until the text changes.
// - `needsChoice(query)` is optional. If it returns true, no item is active until the user chooses one.
import { availableCommands, commandBySlash } from "../ui/commands.js";
import { createElement, createIcon } from "../ui/dom.js";
import { field, insertText, isComposing, restoreText, setText } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { lazyImport } from "../ui/loading.js";
import { announce, showNotice } from "../ui/notice.js";
import { OptionList } from "../ui/options.js";

// Commands: a text that starts with "/" is run as a command instead of being sent.

/** Suggests commands, and after the name of a command its arguments. */
export const commandSource = {
  at(text, caret) {
    const found = caret === text.length && /^\/(?:(\S+) +)?([^\n]*)$/.exec(text);
    if (!found || (!found[1] && /[\s/]/.test(found[2]))) return null;
    return { from: 0, query: { name: found[1] ?? "", text: found[2].toLowerCase() } };
  },
  needsChoice: ({ name, text }) => !name && !text, // a stray Enter must not run the first command
  find: ({ name, text }) => (name ? matchingArguments(name, text) : matchingCommands(text)),
  accept(item, _range, key) {
    if (item.argument !== undefined) runSlashCommand(item.slashCommand, item.argument);
    else if (key === "Tab" || item.slashCommand.choices) setText(`/${item.slashCommand.slash} `);
    else runSlashCommand(item.slashCommand, "");
  },
};

/** Runs a text as a command if it is one. Returns whether it is. A command without arguments has no text after it. */
export function runIfCommand(text) {
  const [, name, argument = ""] = /^\/(\S+)(?: +([^\n]*))?$/.exec(text.trimEnd()) ?? [];
  const slashCommand = name && commandBySlash(name.toLowerCase());
  if (!slashCommand || (argument && !slashCommand.takesText)) return false;
  runSlashCommand(slashCommand, argument, text);
  return true;
}

/**
 * Returns the text to send. Removes one slash if it starts with "//" and a command's name, so such texts can be sent.
 */
export function unescapeSlash(text) {
  const [, name] = /^\/\/(\S+)/.exec(text) ?? [];
  return name && commandBySlash(name.toLowerCase()) ? text.slice(1) : text;
}

async function runSlashCommand(slashCommand, argument, text = "") {
  if (!slashCommand.can()) return showNotice(format(words.notNow, { command: `/${slashCommand.slash}` }));
  setText("");
  // The command could not use the text.
  if ((await slashCommand.run(argument)) === false && text) restoreText(text);
}

function matchingCommands(typed) {
  const all = availableCommands().filter(({ slash }) => slash);
  const byName = all.filter(({ slash }) => slash.startsWith(typed));
  const byKeyword = all.filter(
    (slashCommand) => !byName.includes(slashCommand) && typed && namesOf(slashCommand).includes(typed),
  );
  return [...byName, ...byKeyword].map((slashCommand) => ({
    label: `/${slashCommand.slash}`,
    detail: slashCommand.label,
    icon: slashCommand.icon,
    slashCommand,
  }));
}

const namesOf = ({ label, keywords }) => `${label} ${keywords}`.toLowerCase();

async function matchingArguments(name, typed) {
  const slashCommand = commandBySlash(name.toLowerCase());
  if (!slashCommand?.choices || !slashCommand.can()) return [];
  const matching = (await slashCommand.choices()).filter(({ label }) => label.toLowerCase().includes(typed));
  return matching.map((choice) => ({ icon: slashCommand.icon, ...choice, slashCommand }));
}

// Mentions: after "@". What they suggest is loaded on first use.

/** Suggests the session's agents, and its people except the user. */
export const mentionSource = {
  at(text, caret) {
    const found = /(?:^|[\s(])@([^@\n]{0,40})$/u.exec(text.slice(0, caret));
    return found && { from: caret - found[1].length - 1, query: found[1].toLowerCase() };
  },
  async find(query) {
    return (await lazyImport(() => import("./mentions.js")))?.findMentions(query) ?? [];
  },
  accept({ label, mention = label }, { from, to }) {
    insertText(`@${mention} `, from, to);
    return true;
  },
};

const page = document.getElementById("main");
const MAX_SUGGESTIONS = 50;
const list = document.getElementById("completion");
let sources = [];
let options = null; // null for viewers
let open = null; // {source, range}
let lastQuery = 0;
let shownQuery = 0; // the query whose results the list shows; if it is not the last, the list ignores keys
let dismissed = "";

export function connectCompletion(...newSources) {
  sources = newSources;
  options = new OptionList(field, () => [...list.children], accept, { chooseKeys: ["Enter", "Tab"] });
  field.addEventListener("input", suggest);
  field.addEventListener("click", suggest);
  field.addEventListener("blur", closeList);
  field.setAttribute("aria-controls", list.id);
  // Keeps the focus in the field.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener(
    "click",
    (event) => event.target.closest("[role=option]") && accept(event.target.closest("[role=option]"), event),
  );
}

/** Handles a key if the list is open. Returns true if the list has used the key. */
export function handleCompletionKey(event) {
  if (event.key === "Tab" && event.shiftKey) closeList(); // Shift+Tab leaves the field
  if (!open || shownQuery !== lastQuery || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey)
    return false;
  if (event.key !== "Escape" || isComposing(event)) return options.handleKey(event);
  dismissed = field.value;
  closeList();
  return true;
}

async function suggest() {
  const number = ++lastQuery;
  const [source, range] = findSource();
  const items = source ? await source.find(range.query) : [];
  if (number !== lastQuery) return;
  if (items.length && field.value !== dismissed && document.activeElement === field)
    showList(source, range, items.slice(0, MAX_SUGGESTIONS));
  else closeList();
}

function findSource() {
  if (field.selectionStart !== field.selectionEnd) return [];
  for (const source of sources) {
    const range = source.at(field.value, field.selectionStart);
    if (range) return [source, { ...range, to: field.selectionStart }];
  }
  return [];
}

function showList(source, range, items) {
  if (!open) announce(format(words.suggestions, { count: items.length }));
  open = { source, range };
  shownQuery = lastQuery;
  list.replaceChildren(...items.map(createOption));
  setHidden(false);
  options.activate(source.needsChoice?.(range.query) ? null : list.firstElementChild);
}

/** Shows or hides the list. With the attribute, the style sheet hides elements that the list would half cover. */
function setHidden(isHidden) {
  list.hidden = isHidden;
  page.toggleAttribute("data-completing", !isHidden);
}

function createOption(item, number) {
  const texts = [
    ["option-label", item.label],
    ["option-detail", item.detail],
  ];
  const spans = texts.map(([className, textContent = ""]) =>
    createElement("span", { className, dir: "auto", textContent }),
  );
  const shown = [item.face ?? createIcon(item.icon ?? ""), ...spans];
  return createElement("li", { id: `completion-${number}`, role: "option", ariaSelected: "false", item }, ...shown);
}

function closeList() {
  lastQuery += 1;
  open = null;
  setHidden(true);
  options.activate(null);
}

function accept({ item }, { key = "Enter" }) {
  const { source, range } = open;
  closeList();
  if (source.accept(item, range, key)) dismissed = field.value;
}
