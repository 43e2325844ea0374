// The picker of the agent and model for the next answers: models by provider, with a search field if there are many.
// The page passes `ask`, which carries out a command: over the session's socket, or at home in the form.
import { textAt } from "../net/http.js";
import { parse } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { notice } from "../ui/notice.js";
import { ENDS, Options, PAGES } from "../ui/options.js";
import { close, openBox, place } from "../ui/popover.js";

// Choosing by name, for "/agent" and "/model".

const FRESH = 30_000;
let asked = null;
let askedAt = 0;

const KINDS = {
  agent: {
    choice: ({ agent, title, uses }) => ({
      label: title,
      detail: uses,
      argument: agent,
      command: { type: "set_agent", agent },
    }),
    none: words.noSuchAgent,
  },
  model: {
    choice: ({ model, provider }) => ({
      label: model,
      detail: provider,
      argument: `${provider}/${model}`,
      command: { type: "set_model", provider, model },
    }),
    none: words.noSuchModel,
  },
};

/** Returns the picker's entries of a kind, as choices of a command. */
export async function choices(kind) {
  if (!asked || Date.now() - askedAt > FRESH) asked = fetched();
  const options = [...parse(await asked).querySelectorAll(`[data-${kind}]`)];
  return options.map((option) => KINDS[kind].choice(option.dataset));
}

/** Chooses by name ("provider/name" for a model) or by a unique part of it; resolves to false if there is no match. */
export async function choose(kind, name, ask) {
  const known = await choices(kind);
  const wanted = name.toLowerCase();
  const alike = known.filter(({ label, argument }) => `${label}\n${argument}`.toLowerCase().includes(wanted));
  const chosen =
    known.find(({ label, argument }) => [label, argument].includes(name)) ?? (alike.length === 1 ? alike[0] : null);
  if (chosen) return (await ask(chosen.command)) !== null;
  notice(fill(KINDS[kind].none, { name }));
  return false;
}

async function fetched() {
  askedAt = Date.now();
  return (await textAt(document.getElementById("model").dataset.address)) ?? "";
}

/** Opens the list at its button. */
export async function openPicker(button, ask) {
  const box = openBox(button, { className: "picker", label: button.title });
  if (!box) return;
  box.textContent = words.loading;
  const html = await textAt(button.dataset.address);
  if (!box.isConnected) return;
  if (html === null) {
    close();
    return notice(words.notLoaded);
  }
  box.innerHTML = html;
  place();
  new Picker(box, ask);
}

class Picker {
  #box;
  #list;
  #field;
  #options;

  constructor(box, ask) {
    this.#box = box;
    this.#list = box.querySelector("[role=listbox]");
    this.#field = box.querySelector("[role=combobox]");
    const holder = this.#field ?? this.#list;
    this.#options = new Options(
      holder,
      () => this.#shown,
      (option) => pick(option, ask),
      {
        mark: (option, isActive) => option.classList.toggle("active", isActive),
        ...(this.#field ? { keys: PAGES } : { keys: { ...PAGES, ...ENDS }, nameOf, takes: ["Enter", " "] }),
      },
    );
    this.#options.followPointer(this.#list);
    holder.addEventListener("keydown", (event) => this.#options.pressed(event) && event.preventDefault());
    this.#field?.addEventListener("input", () => this.#find(this.#field.value));
    box.querySelector(".picker-reasoning")?.addEventListener("change", ({ target }) => setReasoning(target, ask));
    holder.focus({ preventScroll: true });
    this.#options.show(this.#list.querySelector("[aria-selected=true]") ?? this.#shown[0] ?? null);
  }

  get #shown() {
    return [...this.#list.querySelectorAll("[role=option]:not([hidden])")];
  }

  /** Shows options whose name or provider contains every typed word. */
  #find(text) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const option of this.#list.querySelectorAll("[role=option]")) {
      const known = `${nameOf(option)} ${(option.dataset.provider ?? "").toLowerCase()}`;
      option.hidden = !wanted.every((word) => known.includes(word));
    }
    for (const group of this.#list.querySelectorAll("[role=group]"))
      group.hidden = !group.querySelector("[role=option]:not([hidden])");
    const none = this.#box.querySelector(".picker-empty");
    none.textContent = this.#shown.length ? "" : none.dataset.none;
    if (!this.#shown.includes(this.#options.active)) this.#options.show(this.#shown[0] ?? null);
  }
}

function pick(option, ask) {
  if (option.ariaDisabled === "true") return;
  close();
  const { agent, provider, model } = option.dataset;
  if (option.ariaSelected !== "true")
    ask(agent ? { type: "set_agent", agent } : { type: "set_model", provider, model });
}

/** Sends a changed effort or thinking budget; resets the field if it is refused. */
async function setReasoning(select, ask) {
  const value = select.name === "thinking_budget" ? Number(select.value) : select.value;
  if ((await ask({ type: "configure", [select.name]: value })) === null) select.value = select.dataset.sent;
  else select.dataset.sent = value;
}

const nameOf = (option) => (option.dataset.model ?? option.textContent).trim().toLowerCase();
