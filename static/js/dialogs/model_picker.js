// The picker of the agent and model for the next answers: models by provider, with a search field if there are many.
// The page passes `sendCommand`, which sends a command to the session, or on the home page changes the form.
import { fetchText } from "../net/http.js";
import { parseHtml } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { showNotice } from "../ui/notice.js";
import { END_KEYS, OptionList, PAGE_KEYS } from "../ui/options.js";
import { closePopover, openPopover, positionPopover } from "../ui/popover.js";

// Choosing by name, for "/agent" and "/model".

const CACHE_MS = 30_000;
let cachedHtml = null;
let fetchedAt = 0;

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
  if (!cachedHtml || Date.now() - fetchedAt > CACHE_MS) cachedHtml = fetchHtml();
  const options = [...parseHtml(await cachedHtml).querySelectorAll(`[data-${kind}]`)];
  return options.map((option) => KINDS[kind].choice(option.dataset));
}

/** Chooses by name, "provider/name" or a unique part of these. Resolves to false if none matches or it is refused. */
export async function choose(kind, name, sendCommand) {
  const known = await choices(kind);
  const wanted = name.toLowerCase();
  const partial = known.filter(({ label, argument }) => `${label}\n${argument}`.toLowerCase().includes(wanted));
  const chosen =
    known.find(({ label, argument }) => [label, argument].includes(name)) ?? (partial.length === 1 ? partial[0] : null);
  if (chosen) return (await sendCommand(chosen.command)) !== null;
  showNotice(format(KINDS[kind].none, { name }));
  return false;
}

async function fetchHtml() {
  fetchedAt = Date.now();
  const html = await fetchText(document.getElementById("model").dataset.address);
  if (html === null) cachedHtml = null; // the next call tries again
  return html ?? "";
}

/** Opens the list at its button. */
export async function openPicker(button, sendCommand) {
  const box = openPopover(button, { className: "picker", label: button.title });
  if (!box) return;
  box.textContent = words.loading;
  const html = await fetchText(button.dataset.address);
  if (!box.isConnected) return;
  if (html === null) {
    closePopover();
    return showNotice(words.notLoaded);
  }
  box.innerHTML = html;
  positionPopover();
  new Picker(box, sendCommand);
}

class Picker {
  #box;
  #list;
  #field;
  #options;

  constructor(box, sendCommand) {
    this.#box = box;
    this.#list = box.querySelector("[role=listbox]");
    this.#field = box.querySelector("[role=combobox]");
    const holder = this.#field ?? this.#list;
    this.#options = new OptionList(
      holder,
      () => this.#shown,
      (option) => chooseOption(option, sendCommand),
      {
        mark: (option, isActive) => option.classList.toggle("active", isActive),
        ...(this.#field
          ? { keys: PAGE_KEYS }
          : { keys: { ...PAGE_KEYS, ...END_KEYS }, nameOf, chooseKeys: ["Enter", " "] }),
      },
    );
    this.#options.followPointer(this.#list);
    holder.addEventListener("keydown", (event) => this.#options.handleKey(event) && event.preventDefault());
    this.#field?.addEventListener("input", () => this.#find(this.#field.value));
    box
      .querySelector(".picker-reasoning")
      ?.addEventListener("change", ({ target }) => setReasoning(target, sendCommand));
    holder.focus({ preventScroll: true });
    this.#options.activate(this.#list.querySelector("[aria-selected=true]") ?? this.#shown[0] ?? null);
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
    if (!this.#shown.includes(this.#options.active)) this.#options.activate(this.#shown[0] ?? null);
  }
}

function chooseOption(option, sendCommand) {
  if (option.ariaDisabled === "true") return;
  closePopover();
  const { agent, provider, model } = option.dataset;
  if (option.ariaSelected !== "true")
    sendCommand(agent ? { type: "set_agent", agent } : { type: "set_model", provider, model });
}

/** Sends a changed effort or thinking budget. Resets the field if the server refuses it. */
async function setReasoning(select, sendCommand) {
  const value = select.name === "thinking_budget" ? Number(select.value) : select.value;
  if ((await sendCommand({ type: "configure", [select.name]: value })) === null) select.value = select.dataset.sent;
  else select.dataset.sent = value;
}

const nameOf = (option) => (option.dataset.model ?? option.textContent).trim().toLowerCase();
