// The buttons, keys and commands that open the panel. Its module is imported on first use. An open panel reopens.
import { readStored, writeStored } from "../net/storage.js";
import { addCommand, hasControl, isDialogOpen, onAction } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { lazyImport } from "../ui/loading.js";
import { closePopover as closeBox } from "../ui/popover.js";

const WIDE = matchMedia("(width >= 1200px)"); // the same condition as in panel.css
const OPEN_NAME = "parley:panel";
const panel = document.getElementById("panel");

const loadPanel = () => lazyImport(() => import("./panel.js"));

function show(module, { focus = "panel", tab = "", past = "", path = null } = {}) {
  if (WIDE.matches) writeStored(OPEN_NAME, "open");
  module.open(focus, { tab, past, path });
}

function hide(module) {
  writeStored(OPEN_NAME, "");
  module.close();
}

/** Calls `act` with the panel's module. Imports resolve later, so `act` decides what depends on the panel's state. */
async function withPanel(act) {
  const module = await loadPanel();
  if (module) act(module);
}

const openPanel = (options) => withPanel((module) => show(module, options));
const closePanel = () => withPanel(hide);
const togglePanel = () => withPanel((module) => (panel.hidden ? show(module) : hide(module)));
const openContext = (past = "") => openPanel({ focus: "panel-tab-context", tab: "context", past });

const openPrompt = () => openPanel({ focus: "prompt", tab: "about" });
const openFiles = (path = null) => openPanel({ focus: "panel-tab-files", tab: "files", path });

function addCommands() {
  addCommand({
    id: "panel",
    label: words.panel,
    keywords: words.panelWords,
    icon: "panel-right",
    keys: "Ctrl+.",
    slash: "panel",
    run: togglePanel,
  });
  addCommand({
    id: "system-prompt",
    label: words.systemPrompt,
    icon: "sparkles",
    slash: "system",
    run: () => openPrompt(),
  });
  addCommand({
    id: "context",
    label: words.context,
    keywords: words.contextWords,
    icon: "list-checks",
    slash: "context",
    run: () => openContext(),
  });
  addCommand({
    id: "files",
    label: words.files,
    keywords: words.filesWords,
    icon: "folder",
    slash: "files",
    run: () => openFiles(),
  });
}

function handleKey(event) {
  if (isDialogOpen()) return;
  if (hasControl(event) && !event.shiftKey && event.key === ".") {
    event.preventDefault();
    togglePanel();
  } else if (event.key === "Escape" && !event.defaultPrevented && panel.contains(document.activeElement)) {
    event.preventDefault();
    closePanel();
  }
}

export function connect() {
  addCommands();
  onAction("panel", togglePanel);
  onAction("panel-close", closePanel);
  onAction("panel-tab", ({ dataset }) => openPanel({ focus: `panel-tab-${dataset.tab}`, tab: dataset.tab }));
  onAction("file-show", ({ dataset }) => openFiles(dataset.path));
  onAction("context-past", ({ dataset }) => {
    closeBox();
    openContext(dataset.of);
  });
  onAction("context-now", () => {
    closeBox();
    openContext();
  });
  document.addEventListener("keydown", handleKey);
  if (WIDE.matches && readStored(OPEN_NAME)) openPanel({ focus: "" });
}
