// The palette, which finds commands, sessions and messages.
import { fetchText } from "../net/http.js";
import { currentWorkspace } from "../sidebar/list_content.js";
import { availableCommands, keyLabel } from "../ui/commands.js";
import { cloneTemplate, createElement, createIcon } from "../ui/dom.js";
import { isComposing } from "../ui/field.js";
import { countText, words } from "../ui/i18n.js";
import { navigate } from "../ui/navigation.js";
import { OptionList, PAGE_KEYS } from "../ui/options.js";
import { localizeTimes } from "../ui/time.js";

const TYPING_PAUSE_MS = 120;
const template = document.getElementById("palette-template");
const dialog = cloneTemplate("palette-template");
const [input, list, emptyNote, status] = ["#palette-input", "#palette-list", ".palette-none", "#palette-status"].map(
  (name) => dialog.querySelector(name),
);
const results = createElement("div", { role: "presentation" }); // the server's results
// Ranks of labels by how well they match the query. The server ranks titles of sessions in the same way.
const [EXACT, PREFIX, INSIDE, BY_KEYWORD] = [0, 1, 2, 3];
const options = new OptionList(input, allOptions, runOption, { keys: PAGE_KEYS });
let pendingRequest = null;
let searchTimer = 0;
let ranks = []; // the ranks of the shown actions
let earlyEnter = null; // the event of an Enter key that was pressed before the results arrived

/** Opens the palette with a text, or closes it if it is open. */
export function toggle(text = "") {
  if (dialog.open) return dialog.close();
  input.value = text;
  list.replaceChildren();
  results.replaceChildren();
  dialog.showModal();
  input.focus();
  search(0);
}

/** Shows matching commands immediately. The previous results stay below until the new ones arrive. */
function search(wait) {
  earlyEnter = null;
  drawActions();
  pendingRequest?.abort();
  clearTimeout(searchTimer);
  dialog.ariaBusy = "true";
  searchTimer = setTimeout(fetchResults, wait, input.value.trim());
}

function drawActions() {
  const terms = input.value.trim().toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const matching = availableCommands()
    .filter(({ id }) => id !== "search")
    .map((entry) => ({ entry, rank: rankAction(entry, terms) }))
    .filter(({ rank }) => rank !== null)
    .sort((one, other) => one.rank - other.rank);
  ranks = matching.map(({ rank }) => rank);
  const options = matching.map(({ entry, rank }) => createAction(entry, rank));
  const labelled = options.filter((_, index) => ranks[index] < BY_KEYWORD);
  const byKeyword = options.slice(labelled.length);
  const groups = [
    ...(labelled.length ? [createGroup(words.everythingElse, labelled)] : []),
    results,
    ...(byKeyword.length ? [createGroup(labelled.length ? words.actionMore : words.everythingElse, byKeyword)] : []),
  ];
  // Without a query, sessions come first.
  list.replaceChildren(...(terms.length ? groups : [results, ...groups.filter((each) => each !== results)]));
  updateOptions(false);
}

/** Returns the rank of an action, EXACT to BY_KEYWORD, or null if it does not match. */
function rankAction({ label, keywords }, terms) {
  const [name, query] = [label.toLocaleLowerCase(), terms.join(" ")];
  if (name === query) return EXACT;
  if (name.startsWith(query)) return PREFIX;
  if (terms.every((term) => name.includes(term))) return INSIDE;
  return terms.every((term) => `${name} ${keywords.toLocaleLowerCase()}`.includes(term)) ? BY_KEYWORD : null;
}

/** Moves the results above the actions if a session's title has a better rank than all actions. */
function orderResults() {
  const best = Number(results.querySelector("[data-rank]")?.dataset.rank ?? INSIDE);
  if (input.value.trim() && best < (ranks[0] ?? BY_KEYWORD)) list.prepend(results);
}

function createGroup(label, members) {
  const heading = createElement("p", { className: "palette-group", textContent: label, ariaHidden: "true" });
  return createElement("div", { role: "group", ariaLabel: label }, heading, ...members);
}

function createAction(entry, rank) {
  const shown = [
    createIcon(entry.icon ?? ""),
    createElement("span", { className: "palette-label", textContent: entry.label }),
  ];
  if (entry.keys) shown.push(createElement("kbd", { textContent: entry.keys }));
  return createElement("div", { className: "palette-item", role: "option", entry, rank }, ...shown);
}

async function fetchResults(query) {
  const request = new AbortController();
  pendingRequest = request;
  const address = `${template.dataset.address}?${new URLSearchParams({ q: query, workspace: currentWorkspace(), current: document.getElementById("session-list").dataset.current })}`;
  const html = await fetchText(address, { signal: request.signal });
  if (request.signal.aborted) return;
  results.innerHTML = html ?? ""; // from our own template, which escapes user content
  localizeTimes(results);
  orderResults();
  updateOptions(true, html === null ? words.notLoaded : "");
}

/** Numbers the options and activates the best one. When the server's results are there, announces their number. */
function updateOptions(final, problem = "") {
  const present = allOptions();
  for (const [number, option] of present.entries()) option.id = `palette-${number}`;
  // Until the server's results arrive, the results of the previous query stay visible, but Enter does not open them.
  // Enter runs an action only if its label begins with the query, because otherwise a session may match better.
  options.activate(present.find((option) => final || option.rank <= PREFIX) ?? null);
  const empty = problem || (present.length ? "" : words.nothingFound);
  emptyNote.textContent = empty;
  emptyNote.hidden = !final || !empty;
  list.hidden = final && !present.length;
  if (!final) return;
  dialog.ariaBusy = "false";
  status.textContent = empty || countText(present.length, words.resultOne, words.resultCount);
  if (earlyEnter && options.active && !problem) runOption(options.active, earlyEnter);
  earlyEnter = null;
}

function allOptions() {
  return [...list.querySelectorAll("[role=option]")];
}

/** Runs an option's command or follows its link, with Ctrl in a new tab. */
function runOption(option, event) {
  const inNewTab = event.ctrlKey || event.metaKey;
  if (event.type === "click" && option.matches("a") && (inNewTab || event.shiftKey)) return; // the browser handles it
  event.preventDefault();
  if (inNewTab && !option.entry) return window.open(option.href, "_blank", "noopener");
  dialog.close();
  if (option.entry) option.entry.run("");
  else navigate(option.href);
}

export function connect() {
  document.body.append(dialog);
  for (const key of dialog.querySelectorAll("kbd")) key.textContent = keyLabel(key.textContent);
  dialog.addEventListener("close", () => {
    pendingRequest?.abort();
    clearTimeout(searchTimer);
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.querySelector(".palette-close").addEventListener("click", () => dialog.close());
  input.addEventListener("input", (event) => event.isComposing || search(TYPING_PAUSE_MS));
  input.addEventListener("compositionend", () => search(TYPING_PAUSE_MS));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !isComposing(event) && dialog.ariaBusy === "true" && !options.active)
      earlyEnter = event;
    if (options.handleKey(event)) event.preventDefault();
  });
  options.followPointer(list);
}
