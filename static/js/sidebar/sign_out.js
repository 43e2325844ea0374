// Sign-out: removes drafts, unsent messages and everything else that this browser stores for the user.
import { answerOf, copyOf } from "../ui/dom.js";

const STORAGES = ["localStorage", "sessionStorage"];
// What belongs to the browser rather than to the user.
const KEPT = ["parley:theme", "parley:wrap"];

function namesIn(storage) {
  try {
    return Object.keys(globalThis[storage]).filter((name) => name.startsWith("parley:") && !KEPT.includes(name));
  } catch {
    return [];
  }
}

function clear() {
  for (const storage of STORAGES) for (const name of namesIn(storage)) globalThis[storage].removeItem(name);
}

const hasUnsent = () => namesIn("localStorage").some((name) => name.startsWith("parley:outbox:"));

/** Signs out; asks first if the user has no way to sign in again. */
export async function signOut() {
  const form = document.getElementById("sign-out");
  if (form.dataset.wayBack === "yes" || (await answerOf(copyOf("confirm-sign-out"))) === "confirm")
    form.requestSubmit();
}

export function connect() {
  for (const form of document.querySelectorAll("form[data-sign-out]")) {
    form.addEventListener("submit", (event) => {
      if (hasUnsent() && !confirm(form.dataset.signOut)) return event.preventDefault();
      clear();
      addEventListener("pagehide", clear); // also what the page stores while it unloads
    });
  }
}
