// The settings page: choices apply at once.
import * as signOut from "../sidebar/sign_out.js";
import { ready } from "../ui/commands.js";
import { connectCopying } from "../ui/copy_text.js";
import * as preferences from "../ui/preferences.js";
import { showSection } from "../ui/sections.js";
import { localise } from "../ui/time.js";
import * as toasts from "../ui/toast.js";

// A new API token: shown once, with a button to copy it, and not created again by a reload.

const field = document.querySelector("input#token-answer");

if (field) {
  field.select();
  connectCopying(document.getElementById("copy-token"), field, () => field.value);
}

const form = document.getElementById("preferences");
const said = document.getElementById("saved").dataset;

for (const part of [preferences, signOut, toasts]) part.connect();

form.addEventListener("change", async ({ target }) => {
  if (target.name === "notify" && target.checked && !(await allowed(target))) return;
  const value = target.type === "checkbox" && !target.checked ? "no" : target.value;
  if (target.name === "theme") document.dispatchEvent(new CustomEvent("parley:theme", { detail: value }));
  const problem = await preferences.keep({ [target.name]: value }, said.notSaved);
  if (!problem && target.name === "language") return location.reload(); // the page itself changes its language
  toasts.toast(problem || said.saved);
});

localise(document);
// Later, because the browser's jump to the address's #section at the end of loading takes the focus.
addEventListener("load", () => setTimeout(() => document.querySelector("[aria-invalid=true]")?.focus()));
showSection();

for (const upload of document.querySelectorAll("form[data-at-once]"))
  upload.addEventListener("change", () => upload.requestSubmit());

ready();

/** Asks the browser for permission when the user switches notifications on; shows a refusal. */
async function allowed(box) {
  const answer = "Notification" in window ? await Notification.requestPermission() : "denied";
  box.checked = answer === "granted";
  document.getElementById("notify-refused").hidden = box.checked;
  return box.checked;
}
