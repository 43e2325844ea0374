// Commands, keys and buttons that open dialogs. These are loaded on first use.
import { offer, on, shown, withControl } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { late, lateWithTyped } from "../ui/late.js";
import { unlessOvertaken } from "../ui/popover.js";

async function search() {
  const [palette, typed] = await lateWithTyped(() => import("./palette.js"));
  palette?.toggle(typed);
}

function connectSearch() {
  on("search", search);
  const keys = document.querySelector(".rail-action kbd");
  keys.textContent = shown(keys.textContent);
  offer({ id: "search", label: words.search, icon: "search", keys: "Ctrl+K", slash: "search", run: search });
  addEventListener("keydown", (event) => {
    if (!withControl(event)) return;
    const key = event.key.toLowerCase();
    if (key === "k" && !event.shiftKey) search();
    else if (key === "o" && event.shiftKey) document.getElementById("rail-new")?.click();
    else return;
    event.preventDefault();
  });
}

// Exporting the open session, and importing.

const main = document.getElementById("main");

const dialogs = () => late(() => import("./import.js"));
const openExport = async () => (await dialogs())?.openExport(main.dataset.session);
const openImport = async () => (await dialogs())?.openImport();

function connectTransfer() {
  on("import", openImport);
  if (main.dataset.session)
    offer({
      id: "export",
      label: words.exportSession,
      icon: "download",
      words: "JSON Markdown",
      slash: "export",
      run: openExport,
    });
  offer({
    id: "import",
    label: words.importSessions,
    icon: "upload",
    words: "ChatGPT Claude JSON ZIP",
    slash: "import",
    run: openImport,
    can: () => document.getElementById("rail-new") !== null,
  });
}

// The schedules of the open session. Viewers see them, too.

async function openSchedules(text = "") {
  (await late(() => import("./schedules.js")))?.openSchedules(main.dataset.session, text);
}

function connectSchedules() {
  if (!main.dataset.session) return;
  offer({
    id: "schedules",
    label: words.schedules,
    words: words.schedulesWords,
    icon: "clock",
    slash: "schedule",
    run: openSchedules,
  });
}

export function connect() {
  connectSchedules();
  connectTransfer();
  connectSearch();
}

// The button that shows the agent and the model and opens their picker, and "/model" and "/agent", which do the same.

const picker = () => late(() => import("./model_picker.js"));

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
