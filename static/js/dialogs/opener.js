// Commands, keys and buttons that open dialogs. The dialogs' modules are loaded on first use.
import { addCommand, hasControl, keyLabel, onAction } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { lazyImport, lazyImportWithTyped } from "../ui/loading.js";
import { unlessUserActed } from "../ui/popover.js";

async function openPalette(text = "") {
  const [palette, typed] = await lazyImportWithTyped(() => import("./palette.js"));
  palette?.toggle(text + typed);
}

function connectPalette() {
  onAction("search", () => openPalette());
  const keys = document.querySelector(".sidebar-action kbd");
  keys.textContent = keyLabel(keys.textContent);
  for (const button of document.querySelectorAll("#sidebar [title*=Ctrl]")) button.title = keyLabel(button.title);
  addCommand({
    id: "search",
    label: words.search,
    icon: "search",
    keys: "Ctrl+K",
    slash: "search",
    run: openPalette,
    takesText: true,
  });
  addEventListener("keydown", (event) => {
    if (!hasControl(event)) return;
    const key = event.key.toLowerCase();
    if (key === "k" && !event.shiftKey) openPalette();
    else if (key === "o" && event.shiftKey) document.getElementById("new-session")?.click();
    else return;
    event.preventDefault();
  });
}

// Exporting the open session, and importing.

const main = document.getElementById("main");

const loadTransfer = () => lazyImport(() => import("./transfer.js"));
const openExport = async () => (await loadTransfer())?.openExport(main.dataset.session);
const openImport = async () => (await loadTransfer())?.openImport();

function connectTransfer() {
  onAction("import", openImport);
  if (main.dataset.session)
    addCommand({
      id: "export",
      label: words.exportSession,
      icon: "download",
      keywords: "JSON Markdown",
      slash: "export",
      run: openExport,
    });
  addCommand({
    id: "import",
    label: words.importSessions,
    icon: "upload",
    keywords: "ChatGPT Claude JSON ZIP",
    slash: "import",
    run: openImport,
    can: () => document.getElementById("new-session") !== null,
  });
}

// The schedules of the open session, which viewers can also open.

async function openSchedules(text = "") {
  (await lazyImport(() => import("./schedules.js")))?.openSchedules(main.dataset.session, text);
}

function connectSchedules() {
  if (!main.dataset.session) return;
  addCommand({
    id: "schedules",
    label: words.schedules,
    keywords: words.schedulesWords,
    icon: "clock",
    slash: "schedule",
    run: openSchedules,
    takesText: true,
  });
}

export function connect() {
  connectSchedules();
  connectTransfer();
  connectPalette();
}

// The button with the agent and the model, which opens their picker, and the commands "/model" and "/agent".

const loadPicker = () => lazyImport(() => import("./model_picker.js"));

/** Returns the choices of a kind ("agent" or "model"), as model_picker.js describes them. */
export const fetchChoices = async (kind) => (await loadPicker())?.choices(kind) ?? [];

/** Connects the picker. `sendCommand(command)` applies a choice, and resolves to null if it was refused. */
export function connectPicker(sendCommand) {
  onAction("model", async (button) => (await unlessUserActed(loadPicker()))?.openPicker(button, sendCommand));
  addChoiceCommand("model", words.chooseModel, "cpu", sendCommand);
  if (document.querySelector("#model .agent-now bdi")) addChoiceCommand("agent", words.chooseAgent, "bot", sendCommand);
}

function addChoiceCommand(id, label, icon, sendCommand) {
  const run = async (name) =>
    name ? ((await loadPicker())?.choose(id, name, sendCommand) ?? false) : document.getElementById("model").click();
  addCommand({ id, label, icon, slash: id, run, choices: () => fetchChoices(id) });
}
