// Sign-out: removes drafts, unsent messages and everything else that this browser stores for the user.
import { namesWith } from "../net/storage.js";
import { answerOf, copyOf } from "../ui/dom.js";

const STORAGES = ["localStorage", "sessionStorage"];
// What belongs to the browser rather than to the user.
const KEPT = ["parley:theme", "parley:wrap"];

const namesIn = (storage) => namesWith("parley:", storage).filter((name) => !KEPT.includes(name));

function clear() {
  for (const storage of STORAGES) for (const name of namesIn(storage)) globalThis[storage].removeItem(name);
}

const hasUnsent = () => namesIn("localStorage").some((name) => name.startsWith("parley:outbox:"));

/** Signs out, as the button in the settings does. */
export const signOut = () => document.getElementById("sign-out").requestSubmit();

/** Asks a user who has no way to sign in again, or who has unsent messages; resolves to whether to sign out. */
async function isSure(template) {
  const dialog = copyOf(template);
  dialog.querySelector("a")?.addEventListener("click", () => dialog.close()); // in the settings it leads to the same page
  return (await answerOf(dialog)) === "confirm";
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
        if (!(await isSure(question))) return;
        if (question === "confirm-unsent") form.dataset.discards = "yes";
        else form.dataset.wayBack = "yes";
        return form.requestSubmit();
      }
      clear();
      addEventListener("pagehide", clear); // also what the page stores while it unloads
    });
  }
}
