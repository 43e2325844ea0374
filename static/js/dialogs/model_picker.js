// Choosing the agent and the model of the next answers: a list, models by provider, with a field to find one when there are many.
// The page gives an `ask`, which does what a command of the session's socket says: there, or at home before there is a session.
import { textAt } from "../net/http.js";
import { composing } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { typeahead } from "../ui/menu.js";
import { notice } from "../ui/notice.js";
import { parse } from "../ui/patch.js";
import { close, openBox, place } from "../ui/popover.js";

// The agent or the model by its name, behind "/agent" and "/model".

const FRESH = 30_000;
let asked = null;
let askedAt = 0;

const KINDS = {
  agent: {
    choice: ({ agent, title, uses }) => ({ label: title, detail: uses, argument: agent, command: { type: "set_agent", agent } }),
    none: words.noSuchAgent,
  },
  model: {
    choice: ({ model, provider }) => ({
      label: model, detail: provider, argument: `${provider}/${model}`, command: { type: "set_model", provider, model },
    }),
    none: words.noSuchModel,
  },
};

/** What the picker offers of a kind, as choices of a deed. */
export async function choices(kind) {
  if (!asked || Date.now() - askedAt > FRESH) asked = fetched();
  const options = [...parse(await asked).querySelectorAll(`[data-${kind}]`)];
  return options.map((option) => KINDS[kind].choice(option.dataset));
}

/** Chooses by the name ("provider/name" of a model), or a part that no other has; false when there is none of it. */
export async function choose(kind, name, ask) {
  const known = await choices(kind);
  const wanted = name.toLowerCase();
  const alike = known.filter(({ label, argument }) => `${label}\n${argument}`.toLowerCase().includes(wanted));
  const chosen = known.find(({ label, argument }) => [label, argument].includes(name)) ?? (alike.length === 1 ? alike[0] : null);
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
  #ask;
  #list;
  #field;
  #active = null;
  #typed = typeahead(nameOf);

  constructor(box, ask) {
    this.#box = box;
    this.#ask = ask;
    this.#list = box.querySelector("[role=listbox]");
    this.#field = box.querySelector("[role=combobox]");
    this.#list.addEventListener("click", ({ target }) => this.#choose(target.closest("[role=option]")));
    this.#list.addEventListener("pointermove", ({ target }) => this.#show(target.closest("[role=option]"), false));
    this.#holder.addEventListener("keydown", (event) => this.#key(event));
    this.#field?.addEventListener("input", () => this.#find(this.#field.value));
    box.querySelector(".picker-reasoning")?.addEventListener("change", ({ target }) => setReasoning(target, ask));
    this.#holder.focus({ preventScroll: true });
    this.#show(this.#list.querySelector("[aria-selected=true]") ?? this.#shown[0]);
  }

  /** Who has the focus while the options are walked through. */
  get #holder() {
    return this.#field ?? this.#list;
  }

  get #shown() {
    return [...this.#list.querySelectorAll("[role=option]:not([hidden])")];
  }

  #show(option, scroll = true) {
    if (!option || option === this.#active) return;
    this.#active?.classList.remove("active");
    this.#active = option;
    option.classList.add("active");
    this.#holder.setAttribute("aria-activedescendant", option.id);
    if (scroll) option.scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    if (composing(event)) return;
    const all = this.#shown;
    const present = all.indexOf(this.#active);
    const next = { ArrowDown: present + 1, ArrowUp: present - 1, PageDown: Math.min(present + 8, all.length - 1), PageUp: Math.max(present - 8, 0) }[event.key];
    if (next !== undefined) this.#show(all.at(next % all.length));
    else if (event.key === "Enter" || (event.key === " " && !this.#field)) this.#choose(this.#active);
    else if (!this.#field && event.key === "Home") this.#show(all[0]);
    else if (!this.#field && event.key === "End") this.#show(all.at(-1));
    else if (!this.#field && event.key.length === 1 && !event.ctrlKey && !event.metaKey) this.#show(this.#typed(event.key, all, present));
    else return;
    event.preventDefault();
  }

  /** Every word that was written stands in the name, or in that of the model's provider. */
  #find(text) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const option of this.#list.querySelectorAll("[role=option]")) {
      const known = `${nameOf(option)} ${(option.dataset.provider ?? "").toLowerCase()}`;
      option.hidden = !wanted.every((word) => known.includes(word));
    }
    for (const group of this.#list.querySelectorAll("[role=group]")) group.hidden = !group.querySelector("[role=option]:not([hidden])");
    const none = this.#box.querySelector(".picker-empty");
    none.textContent = this.#shown.length ? "" : none.dataset.none;
    if (!this.#shown.includes(this.#active)) this.#show(this.#shown[0]);
  }

  #choose(option) {
    if (!option || option.ariaDisabled === "true") return;
    close();
    const { agent, provider, model } = option.dataset;
    if (option.ariaSelected !== "true") this.#ask(agent ? { type: "set_agent", agent } : { type: "set_model", provider, model });
  }
}

/** Sends a changed effort or thinking budget; a refused one goes back to what holds. */
async function setReasoning(select, ask) {
  const value = select.name === "thinking_budget" ? Number(select.value) : select.value;
  if ((await ask({ type: "configure", [select.name]: value })) === null) select.value = select.dataset.sent;
  else select.dataset.sent = value;
}

const nameOf = (option) => (option.dataset.model ?? option.textContent).trim().toLowerCase();
