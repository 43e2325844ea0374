// The settings page: what is chosen holds at once.
import { keep } from "./preferences.js";
import { localise } from "./time.js";
import { ready } from "./ready.js";
import "./signing_out.js";
import { toast } from "./toast.js";
import "./token.js";

const form = document.getElementById("preferences");
const said = document.getElementById("saved").dataset;

form.addEventListener("change", async ({ target }) => {
  if (target.name === "notify" && target.checked && !(await allowed(target))) return;
  const value = target.type === "checkbox" && !target.checked ? "no" : target.value;
  if (target.name === "theme") document.dispatchEvent(new CustomEvent("parley:theme", { detail: value }));
  const problem = await keep({ [target.name]: value }, said.notSaved);
  if (!problem && target.name === "language") return location.reload(); // the page itself speaks it
  toast(problem || said.saved);
});

localise(document);

for (const upload of document.querySelectorAll("form[data-at-once]")) upload.addEventListener("change", () => upload.requestSubmit());

ready();

/** The browser is asked at the moment when somebody wants it, and its no is told. */
async function allowed(box) {
  const answer = "Notification" in window ? await Notification.requestPermission() : "denied";
  box.checked = answer === "granted";
  document.getElementById("notify-refused").hidden = box.checked;
  return box.checked;
}
