// Export of the open session, and import.
import { textAt } from "../net/http.js";
import { offer, on } from "../ui/commands.js";
import { answerOf, parse } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { toast } from "../ui/toast.js";

// Dialogs that are fetched from the server on demand.

/** Fetches and opens a dialog; resolves to it, or to null if the request failed or a dialog is open already. */
export async function open(address) {
  const html = await textAt(address, { headers: { "HX-Request": "true" } });
  if (html === null) toast(words.notLoaded);
  if (html === null || document.querySelector("dialog:modal")) return null;
  const dialog = parse(html).firstElementChild;
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog
    .querySelector("[download]")
    ?.closest(".dialog-body")
    .addEventListener("click", ({ target }) => target.closest("[download]") && dialog.close());
  answerOf(dialog);
  return dialog;
}

const main = document.getElementById("main");

const openExport = () => open(`/sessions/${main.dataset.session}/export`);
const openImport = async () => (await late(() => import("./import.js")))?.open();

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
