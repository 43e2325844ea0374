// The commands for exporting the open session and for importing; their dialogs are loaded on first use.
import { offer, on } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { late } from "../ui/late.js";

const main = document.getElementById("main");

const dialogs = () => late(() => import("./import.js"));
const openExport = async () => (await dialogs())?.openExport(main.dataset.session);
const openImport = async () => (await dialogs())?.openImport();

export function connect() {
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
