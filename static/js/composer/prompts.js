// Prompts of MCP servers, as commands after "/". Such a command puts the prompt's text into the composer.
import { page } from "../messages/session.js";
import { fetchJson, post } from "../net/http.js";
import { addCommand, hasControl } from "../ui/commands.js";
import { createElement, openDialog } from "../ui/dom.js";
import { field, restoreText } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { showNotice } from "../ui/notice.js";

const address = `/sessions/${page.dataset.session}/prompts`;
let changes = 0; // changes of the session
let fetchedAfter = -1; // the changes before the last request for the prompts
let isFetching = false;
let availableNames = new Set();

/**
 * Fetches the prompts when the user types the first "/", and again after the session's agents or tools have changed.
 */
async function fetchPrompts() {
  if (fetchedAfter === changes || isFetching || !field.value.startsWith("/")) return;
  isFetching = true;
  const before = changes;
  const found = (await fetchJson(address))?.prompts;
  isFetching = false;
  if (!found) return; // tried again with the next key
  fetchedAfter = before;
  availableNames = new Set(found.map(({ name }) => name));
  for (const prompt of found) {
    addCommand({
      id: `prompt-${prompt.name}`,
      label: prompt.title,
      icon: "text-quote",
      slash: prompt.name.toLowerCase(),
      can: () => availableNames.has(prompt.name),
      run: (argument) => insertPrompt(prompt, argument),
      takesText: prompt.arguments.length > 0,
    });
  }
  if (found.length && field.value.startsWith("/")) field.dispatchEvent(new Event("input", { bubbles: true }));
}

/**
 * Puts the text of a prompt into the composer, above what the user has typed since. `argument` is what the user has
 * typed after the command. Resolves to false if the user cancels, or the prompt is refused.
 */
async function insertPrompt(prompt, argument) {
  const [first] = prompt.arguments;
  let values = first ? { [first.name]: argument } : {};
  let problem = "";
  do {
    if (first) values = await askForArguments(prompt, values, problem);
    if (values === null) return false;
    try {
      const request = { name: prompt.name, arguments: JSON.stringify(values) };
      const { text } = await post(`${address}/fill`, request, words.promptFailed);
      restoreText(text); // the caret stays at the end, where the user may be typing
      return field.focus();
    } catch (error) {
      problem = error.message;
    }
  } while (first); // the entered values are shown again, with the problem
  showNotice(problem);
  return false;
}

/** Returns the mark of a required argument. It is hidden from screen readers, because the field has the attribute. */
const createRequiredMark = () =>
  createElement("span", { className: "required", ariaHidden: "true", textContent: " *" });

/** Returns the label with the field of an argument. */
function createField({ name, description, required }, value) {
  const properties = { className: "input argument", name, required, value, rows: 2, dir: "auto" };
  return createElement(
    "label",
    { className: "field" },
    createElement("span", { textContent: name }, required ? createRequiredMark() : ""),
    createElement("textarea", properties),
    createElement("span", { className: "help", textContent: description }),
  );
}

/**
 * Asks for the arguments in a dialog that has these values and shows a problem, if there is one. Resolves to the new
 * values, or to null if the user cancels.
 */
async function askForArguments(prompt, values, problem) {
  const fields = prompt.arguments.map((argument) => createField(argument, values[argument.name] ?? ""));
  if (problem) fields.push(createElement("p", { className: "errors", role: "alert", textContent: problem }));
  const cancel = createElement("button", {
    type: "button",
    className: "button",
    textContent: words.promptCancel,
    onclick: () => dialog.close(""),
  });
  const done = createElement("button", { className: "button primary", value: "use", textContent: words.promptInsert });
  const heading = createElement("h2", { textContent: prompt.title, dir: "auto" });
  const bar = createElement("div", { className: "confirm-bar" }, done, cancel);
  const form = createElement("form", { method: "dialog", className: "dialog-body" }, heading, ...fields, bar);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hasControl(event)) form.requestSubmit(done);
  });
  const dialog = createElement("dialog", { className: "dialog confirm", ariaLabel: prompt.title }, form);
  if ((await openDialog(dialog)) !== "use") return null;
  return Object.fromEntries([...form.querySelectorAll("textarea")].map(({ name, value }) => [name, value]));
}

/** Called when the user has typed the first "/". */
export function connect() {
  fetchPrompts();
  field.addEventListener("input", fetchPrompts);
  page.addEventListener("parley:session-changed", () => changes++);
}
