// Sessions as files: exporting the one that is open, importing others.
import { on } from "./actions.js";
import { offer } from "./deeds.js";
import { late } from "./late.js";
import { words } from "./words.js";

const main = document.getElementById("main");

const openExport = async () => (await late(() => import("./transfer_dialog.js")))?.open(`/sessions/${main.dataset.session}/export`);
const openImport = async () => (await late(() => import("./importing.js")))?.open();

on("import", openImport);

if (main.dataset.session) offer({ id: "export", label: words.exportSession, icon: "download", words: "JSON Markdown", slash: "export", run: openExport });
offer({ id: "import", label: words.importSessions, icon: "upload", words: "ChatGPT Claude JSON ZIP", slash: "import", run: openImport, can: () => document.getElementById("rail-new") !== null });
