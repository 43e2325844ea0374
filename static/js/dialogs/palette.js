// The palette: finds commands, sessions and messages by a few letters.
import { textAt } from "../net/http.js";
import { shownWorkspace } from "../sidebar/organise.js";
import { offered, shown } from "../ui/commands.js";
import { copyOf, icon, make } from "../ui/dom.js";
import { composing } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { go } from "../ui/leaving.js";
import { Options, PAGES } from "../ui/options.js";
import { localise } from "../ui/time.js";

const WAIT = 120;
const template = document.getElementById("palette-template");
const dialog = copyOf("palette-template");
const [input, list, none, said] = ["#palette-input", "#palette-list", ".palette-none", "#palette-said"].map((name) =>
  dialog.querySelector(name),
);
const found = make("div", { role: "presentation" }); // what the server found
// How well a label fits the query. The server ranks titles of sessions in the same way.
const [EXACT, PREFIX, INSIDE, BY_KEYWORD] = [0, 1, 2, 3];
const options = new Options(input, all, act, { keys: PAGES });
let asking = null;
let timer = 0;
let ranks = []; // of the shown actions
let early = null; // Enter, pressed before the answer had arrived

/** Opens the palette, with a text, or closes it. */
export function toggle(text = "") {
  if (dialog.open) return dialog.close();
  input.value = text;
  list.replaceChildren();
  found.replaceChildren();
  dialog.showModal();
  input.focus();
  changed(0);
}

/** Shows commands at once; the previous results stay below until the answer arrives. */
function changed(wait) {
  early = null;
  drawActions();
  asking?.abort();
  clearTimeout(timer);
  dialog.ariaBusy = "true";
  timer = setTimeout(ask, wait, input.value.trim());
}

function drawActions() {
  const terms = input.value.trim().toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const fitting = offered()
    .filter(({ id }) => id !== "search")
    .map((entry) => ({ entry, rank: rankOf(entry, terms) }))
    .filter(({ rank }) => rank !== null)
    .sort((one, other) => one.rank - other.rank);
  ranks = fitting.map(({ rank }) => rank);
  const drawn = fitting.map(({ entry, rank }) => drawAction(entry, rank));
  const labelled = drawn.filter((_, index) => ranks[index] < BY_KEYWORD);
  const others = drawn.slice(labelled.length);
  const groups = [
    ...(labelled.length ? [group(words.everythingElse, labelled)] : []),
    found,
    ...(others.length ? [group(labelled.length ? words.actionMore : words.everythingElse, others)] : []),
  ];
  // Without a query, sessions come first.
  list.replaceChildren(...(terms.length ? groups : [found, ...groups.filter((each) => each !== found)]));
  settle(false);
}

/** Returns how well an action fits: EXACT to BY_KEYWORD, or null. */
function rankOf({ label, words: more }, terms) {
  const [name, query] = [label.toLocaleLowerCase(), terms.join(" ")];
  if (name === query) return EXACT;
  if (name.startsWith(query)) return PREFIX;
  if (terms.every((term) => name.includes(term))) return INSIDE;
  return terms.every((term) => `${name} ${more.toLocaleLowerCase()}`.includes(term)) ? BY_KEYWORD : null;
}

/** Moves the results up if a session's title fits better than the label of any action. */
function order() {
  const best = Number(found.querySelector("[data-rank]")?.dataset.rank ?? INSIDE);
  if (input.value.trim() && best < (ranks[0] ?? BY_KEYWORD)) list.prepend(found);
}

function group(label, members) {
  const heading = make("p", { className: "palette-group", textContent: label, ariaHidden: "true" });
  return make("div", { role: "group", ariaLabel: label }, heading, ...members);
}

function drawAction(entry, rank) {
  const shown = [icon(entry.icon ?? ""), make("span", { className: "palette-label", textContent: entry.label })];
  if (entry.keys) shown.push(make("kbd", { textContent: entry.keys }));
  return make("div", { className: "palette-item", role: "option", entry, rank }, ...shown);
}

async function ask(query) {
  const question = new AbortController();
  asking = question;
  const address = `${template.dataset.address}?${new URLSearchParams({ q: query, workspace: shownWorkspace(), current: document.getElementById("rail-list").dataset.current })}`;
  const html = await textAt(address, { signal: question.signal });
  if (question.signal.aborted) return;
  found.innerHTML = html ?? ""; // from our own template, which escapes user content
  localise(found);
  order();
  settle(true, html === null ? words.notLoaded : "");
}

/** Numbers the options, keeps the active one if possible, and announces their number. */
function settle(final, problem = "") {
  const present = all();
  for (const [number, option] of present.entries()) option.id = `palette-${number}`;
  // Results of an earlier query stay visible until the answer arrives, but Enter does not open them. An action whose
  // label does not begin with the query waits, too: a session may fit better.
  options.show(present.find((option) => final || option.rank <= PREFIX) ?? null);
  const empty = problem || (present.length ? "" : words.nothingFound);
  none.textContent = empty;
  none.hidden = !final || !empty;
  list.hidden = final && !present.length;
  if (!final) return;
  dialog.ariaBusy = "false";
  said.textContent = empty || fill(words.resultCount, { count: present.length });
  if (early && options.active && !problem) act(options.active, early);
  early = null;
}

function all() {
  return [...list.querySelectorAll("[role=option]")];
}

/** Runs an option's command or follows its link; with Ctrl in a new tab. */
function act(option, event) {
  const elsewhere = event.ctrlKey || event.metaKey;
  if (event.type === "click" && option.matches("a") && (elsewhere || event.shiftKey)) return; // the browser handles it
  event.preventDefault();
  if (elsewhere && !option.entry) return window.open(option.href, "_blank", "noopener");
  dialog.close();
  if (option.entry) option.entry.run("");
  else go(option.href);
}

export function connect() {
  document.body.append(dialog);
  for (const key of dialog.querySelectorAll("kbd")) key.textContent = shown(key.textContent);
  dialog.addEventListener("close", () => {
    asking?.abort();
    clearTimeout(timer);
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.querySelector(".palette-close").addEventListener("click", () => dialog.close());
  input.addEventListener("input", (event) => event.isComposing || changed(WAIT));
  input.addEventListener("compositionend", () => changed(WAIT));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !composing(event) && dialog.ariaBusy === "true" && !options.active) early = event;
    if (options.pressed(event)) event.preventDefault();
  });
  options.followPointer(list);
}
