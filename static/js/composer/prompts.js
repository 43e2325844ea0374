// Prompts of MCP servers as commands behind "/": the text of one is put into the composer, where the user can change it.
import { page } from "../messages/session.js";
import { post, valueAt } from "../net/http.js";
import { offer, withControl } from "../ui/commands.js";
import { answerOf, make } from "../ui/dom.js";
import { field, write } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { notice } from "../ui/notice.js";

const address = `/sessions/${page.dataset.session}/prompts`;
let isKnown = false;
let isAsking = false;
let names = new Set();

/** Fetches the prompts when the user types the first "/", and again after the session's agents or tools have changed. */
async function look() {
  if (isKnown || isAsking || !field.value.startsWith("/")) return;
  isAsking = true;
  const found = (await valueAt(address))?.prompts;
  isAsking = false;
  if (!found) return; // the next key asks again
  isKnown = true;
  names = new Set(found.map(({ name }) => name));
  for (const prompt of found) {
    offer({
      id: `prompt-${prompt.name}`,
      label: prompt.title,
      icon: "text-quote",
      slash: prompt.name.toLowerCase(),
      can: () => names.has(prompt.name),
      run: (argument) => use(prompt, argument),
    });
  }
  if (found.length && field.value.startsWith("/")) field.dispatchEvent(new Event("input", { bubbles: true }));
}

async function use(prompt, argument) {
  const given = prompt.arguments.length ? await asked(prompt, argument) : {};
  if (given === null) return;
  try {
    const { text } = await post(
      `${address}/fill`,
      { name: prompt.name, arguments: JSON.stringify(given) },
      words.promptFailed,
    );
    write(text);
    field.focus();
  } catch (error) {
    notice(error.message);
  }
}

/** Returns the mark of a required argument; screen readers know it from the field. */
const mark = () => make("span", { className: "required", ariaHidden: "true", textContent: " *" });

/** Asks for the arguments in a dialog; resolves to their values, or to null. */
async function asked(prompt, first) {
  const inputs = prompt.arguments.map(({ name, required }, place) =>
    make("textarea", { className: "input argument", name, required, value: place ? "" : first, rows: 2, dir: "auto" }),
  );
  const fields = prompt.arguments.map(({ name, description, required }, place) =>
    make(
      "label",
      { className: "field" },
      make("span", { textContent: name }, required ? mark() : ""),
      inputs[place],
      make("span", { className: "help", textContent: description }),
    ),
  );
  const cancel = make("button", {
    type: "button",
    className: "button",
    textContent: words.promptCancel,
    onclick: () => dialog.close(""),
  });
  const done = make("button", { className: "button primary", value: "use", textContent: words.promptInsert });
  const heading = make("h2", { textContent: prompt.title, dir: "auto" });
  const bar = make("div", { className: "confirm-bar" }, done, cancel);
  const form = make("form", { method: "dialog", className: "dialog-body" }, heading, ...fields, bar);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && withControl(event)) form.requestSubmit(done);
  });
  const dialog = make("dialog", { className: "dialog confirm", ariaLabel: prompt.title }, form);
  if ((await answerOf(dialog)) !== "use") return null;
  return Object.fromEntries(inputs.map((input) => [input.name, input.value]));
}

/** Called when the user has typed the first "/". */
export function connect() {
  look();
  field.addEventListener("input", look);
  page.addEventListener("parley:changed", () => (isKnown = false));
}
