// The palette: everything that can be done from here, and every session and message, by a few letters.
import { textAt } from "../net/http.js";
import { shownWorkspace } from "../sidebar/workspaces.js";
import { offered, shown } from "../ui/commands.js";
import { fill, words } from "../ui/i18n.js";
import { icon } from "../ui/menu.js";
import { localise } from "../ui/time.js";

const WAIT = 120;
const template = document.getElementById("palette-template");
const dialog = template.content.firstElementChild.cloneNode(true);
const [input, list, none, said] = ["#palette-input", "#palette-list", ".palette-none", "#palette-said"].map((name) => dialog.querySelector(name));
const found = document.createElement("div"); // what the server found, below the actions
let asking = null;
let timer = 0;
let active = null;
let composing = false;

/** Opens the palette; open, it closes again. */
export function toggle() {
  if (dialog.open) return dialog.close();
  input.value = "";
  list.replaceChildren();
  found.replaceChildren();
  dialog.showModal();
  input.focus();
  changed(0);
}

/** Actions are here at once; what stood below them stays until the answer comes. */
function changed(wait) {
  drawActions();
  asking?.abort();
  clearTimeout(timer);
  dialog.ariaBusy = "true";
  timer = setTimeout(ask, wait, input.value.trim());
}

function drawActions() {
  const terms = input.value.trim().toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ label, words: more }) => terms.every((term) => `${label} ${more}`.toLocaleLowerCase().includes(term));
  const options = offered().filter((deed) => deed.id !== "search" && fits(deed)).map(drawAction);
  // With nothing typed one wants to go somewhere: sessions come first.
  const actions = options.length ? [group(words.everythingElse, options)] : [];
  list.replaceChildren(...(terms.length ? [...actions, found] : [found, ...actions]));
  settle(false);
}

function group(label, options) {
  const element = document.createElement("div");
  element.role = "group";
  element.ariaLabel = label;
  const heading = Object.assign(document.createElement("p"), { className: "palette-group", textContent: label });
  heading.ariaHidden = "true";
  element.append(heading, ...options);
  return element;
}

function drawAction(deed) {
  const option = document.createElement("div");
  option.className = "palette-item";
  option.role = "option";
  option.deed = deed;
  const label = Object.assign(document.createElement("span"), { className: "palette-label", textContent: deed.label });
  const keys = Object.assign(document.createElement("kbd"), { textContent: deed.keys });
  option.append(icon(deed.icon ?? ""), label, ...(deed.keys ? [keys] : []));
  return option;
}

async function ask(query) {
  const question = new AbortController();
  asking = question;
  const address = `${template.dataset.address}?${new URLSearchParams({ q: query, workspace: shownWorkspace(), current: document.getElementById("rail-list").dataset.current })}`;
  const html = await textAt(address, { signal: question.signal });
  if (question.signal.aborted) return;
  found.innerHTML = html ?? ""; // our own template: all that people wrote is escaped in it
  localise(found);
  settle(true, html === null ? words.notLoaded : "");
}

/** Numbers the options, keeps the choice where it can be kept, and says how many there are. */
function settle(final, problem = "") {
  const all = options();
  for (const [number, option] of all.entries()) option.id = `palette-${number}`;
  // What was found for other words stays in sight until the answer comes, and is not what Enter means.
  choose(all.find((option) => final || !found.contains(option)) ?? null, true);
  const empty = problem || (all.length ? "" : words.nothingFound);
  none.textContent = empty;
  none.hidden = !final || !empty;
  list.hidden = final && !all.length;
  if (!final) return;
  dialog.ariaBusy = "false";
  said.textContent = empty || fill(words.resultCount, { count: all.length });
}

const options = () => [...list.querySelectorAll("[role=option]")];

function choose(option, scroll) {
  active?.setAttribute("aria-selected", "false");
  active = option;
  option?.setAttribute("aria-selected", "true");
  if (option) input.setAttribute("aria-activedescendant", option.id);
  else input.removeAttribute("aria-activedescendant");
  if (scroll && option) option.scrollIntoView({ block: "nearest" });
}

function pressed(event) {
  if (composing || event.isComposing || event.keyCode === 229) return; // the keys are the input method's
  const all = options();
  const present = all.indexOf(active);
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
  if (step && all.length) {
    const next = Math.abs(step) === 1 ? (present + step + all.length) % all.length : present + step;
    choose(all[Math.max(0, Math.min(next, all.length - 1))], true);
  } else if (event.key === "Enter") act(event.ctrlKey || event.metaKey);
  else return;
  event.preventDefault();
}

function act(elsewhere) {
  const option = active;
  if (!option) return;
  if (option.deed) {
    dialog.close();
    option.deed.run("");
  } else if (elsewhere) window.open(option.href, "_blank", "noopener");
  else {
    dialog.close();
    location.assign(option.href);
  }
}

export function connect() {
  document.body.append(dialog);
  for (const key of dialog.querySelectorAll("kbd")) key.textContent = shown(key.textContent);
  found.role = "presentation";
  dialog.addEventListener("close", () => {
    asking?.abort();
    clearTimeout(timer);
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.querySelector(".palette-close").addEventListener("click", () => dialog.close());
  input.addEventListener("input", () => composing || changed(WAIT));
  input.addEventListener("compositionstart", () => (composing = true));
  input.addEventListener("compositionend", () => {
    composing = false;
    changed(WAIT);
  });
  input.addEventListener("keydown", pressed);
  list.addEventListener("pointermove", ({ target }) => choose(target.closest("[role=option]") ?? active, false));
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    choose(option, false);
    if (option.matches("a") && (event.ctrlKey || event.metaKey || event.shiftKey)) return; // the browser's own way
    event.preventDefault();
    act(false);
  });
}
