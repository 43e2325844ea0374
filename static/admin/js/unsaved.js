// Lets the browser ask before the user leaves a form with unsaved changes, and keeps them when the login ends.
import * as submitted from "../../js/ui/submitted.js";

const forms = [...document.querySelectorAll("#session_form, #message_form")];
const fields = forms.flatMap((form) => [...form.querySelectorAll("textarea, input[type=text]")]);
let isSaving = false;

const hasChanges = () =>
  document.querySelector(".errornote") !== null || fields.some((field) => field.value !== field.defaultValue);

for (const form of forms)
  form.addEventListener("submit", () => {
    isSaving = true;
  });
addEventListener("pageshow", () => {
  isSaving = false;
});
addEventListener("beforeunload", (event) => {
  if (!isSaving && hasChanges()) event.preventDefault();
});

const { viewer, restored } = document.getElementById("content-start").dataset;
submitted.connect(viewer, (form) => {
  const note = document.createElement("p");
  Object.assign(note, { className: "errornote", role: "alert", textContent: restored });
  form.before(note);
});
