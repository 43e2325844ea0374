// The button that shows the agent and the model and opens their picker, and "/model" and "/agent", which do the same.
import { offer, on } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { unlessOvertaken } from "../ui/popover.js";

const picker = () => late(() => import("../dialogs/model_picker.js"));

/** Returns the choices of a kind ("agent" or "model"), as model_picker.js describes them. */
export const choicesOf = async (kind) => (await picker())?.choices(kind) ?? [];

/** `ask(command)` carries out a choice; it resolves to null if it was refused. */
export function connectChoice(ask) {
  on("model", async (button) => (await unlessOvertaken(picker()))?.openPicker(button, ask));
  offerChoice("model", words.chooseModel, "cpu", ask);
  if (document.querySelector("#model .agent-now bdi")) offerChoice("agent", words.chooseAgent, "bot", ask);
}

function offerChoice(id, label, icon, ask) {
  const run = async (name) =>
    name ? ((await picker())?.choose(id, name, ask) ?? false) : document.getElementById("model").click();
  offer({ id, label, icon, slash: id, run, choices: () => choicesOf(id) });
}
