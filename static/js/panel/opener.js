// Opens the panel: its keys and commands, and whether it was open. The rest is loaded on first use.
import { keep, kept } from "../net/storage.js";
import { isBehind, offer, on, withControl } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { close as closeBox } from "../ui/popover.js";

const WIDE = matchMedia("(width >= 1200px)"); // the same condition as in panel.css
const REMEMBERED = "parley:panel";
const panel = document.getElementById("panel");

const content = () => late(() => import("./panel.js"));

async function open({ focus = "panel", tab = "", past = "", path = null } = {}) {
  if (WIDE.matches) keep(REMEMBERED, "open");
  (await content())?.open(focus, { tab, past, path });
}

async function close() {
  keep(REMEMBERED, "");
  (await content())?.close();
}

const toggle = () => (panel.hidden ? open() : close());
const openContext = (past = "") => open({ focus: "panel-tab-context", tab: "context", past });

export function connect() {
  offer({
    id: "panel",
    label: words.panel,
    words: words.panelWords,
    icon: "panel-right",
    keys: "Ctrl+.",
    slash: "panel",
    run: toggle,
  });
  offer({
    id: "system-prompt",
    label: words.systemPrompt,
    icon: "sparkles",
    slash: "system",
    run: () => open({ focus: "prompt", tab: "about" }),
  });
  offer({
    id: "context",
    label: words.context,
    words: words.contextWords,
    icon: "list-checks",
    slash: "context",
    run: () => openContext(),
  });
  offer({
    id: "files",
    label: words.files,
    words: words.filesWords,
    icon: "folder",
    slash: "files",
    run: () => open({ focus: "panel-tab-files", tab: "files" }),
  });
  on("panel", toggle);
  on("panel-close", close);
  on("panel-tab", ({ dataset }) => open({ focus: `panel-tab-${dataset.tab}`, tab: dataset.tab }));
  on("file-show", ({ dataset }) => open({ focus: "panel-tab-files", tab: "files", path: dataset.path }));
  on("context-past", ({ dataset }) => {
    closeBox();
    openContext(dataset.of);
  });
  on("context-now", () => {
    closeBox();
    openContext();
  });
  document.addEventListener("keydown", (event) => {
    if (isBehind()) return;
    if (withControl(event) && !event.shiftKey && event.key === ".") {
      event.preventDefault();
      toggle();
    } else if (event.key === "Escape" && !event.defaultPrevented && panel.contains(document.activeElement)) {
      event.preventDefault();
      close();
    }
  });
  if (WIDE.matches && kept(REMEMBERED)) open({ focus: "" });
}
