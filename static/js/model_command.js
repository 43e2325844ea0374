// The agent or the model by its name, behind "/agent" and "/model".
import { notice } from "./notice.js";
import { ask } from "./page.js";
import { parse } from "./patch.js";
import { textAt } from "./server.js";
import { fill, words } from "./words.js";

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
export async function choose(kind, name) {
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
