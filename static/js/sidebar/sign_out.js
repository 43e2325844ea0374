// Sign-out: removes drafts, unsent messages and everything else that this browser stores for the user.
import { storedNames } from "../net/storage.js";
import { cloneTemplate, openDialog } from "../ui/dom.js";

const STORAGES = ["localStorage", "sessionStorage"];
// Values that belong to the browser and not to the user.
const KEPT_NAMES = ["parley:theme", "parley:wrap"];

const namesIn = (storage) => storedNames("parley:", storage).filter((name) => !KEPT_NAMES.includes(name));

function clearStorage() {
  for (const storage of STORAGES) for (const name of namesIn(storage)) globalThis[storage].removeItem(name);
}

const hasUnsent = () => namesIn("localStorage").some((name) => name.startsWith("parley:outbox:"));

/** Signs out like the button in the settings. */
export const signOut = () => document.getElementById("sign-out").requestSubmit();

/** Asks a user who cannot sign in again or who has unsent messages. Resolves to whether to sign out. */
async function confirmSignOut(template) {
  const dialog = cloneTemplate(template);
  // In the settings it leads to the same page.
  dialog.querySelector("a")?.addEventListener("click", () => dialog.close());
  return (await openDialog(dialog)) === "confirm";
}

/** Returns the template of the next question to ask before a sign-out, or null. */
function nextQuestion({ wayBack, discards }) {
  if (wayBack === "no") return "confirm-sign-out";
  return hasUnsent() && discards !== "yes" ? "confirm-unsent" : null;
}

export function connect() {
  for (const form of document.querySelectorAll("form[data-sign-out]")) {
    form.addEventListener("submit", async (event) => {
      const question = nextQuestion(form.dataset);
      if (question) {
        event.preventDefault();
        if (!(await confirmSignOut(question))) return;
        if (question === "confirm-unsent") form.dataset.discards = "yes";
        else form.dataset.wayBack = "yes";
        return form.requestSubmit();
      }
      clearStorage();
      addEventListener("pagehide", clearStorage); // also what the page stores while it closes
    });
  }
}
