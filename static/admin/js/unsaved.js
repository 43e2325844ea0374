// Lets the browser ask before the user leaves a form with unsaved changes, and keeps them when the login ends.
import * as submitted from "../../js/ui/submitted.js";

const TEXTS = "textarea, input:is([type=text], [type=number], [type=email], [type=url])";
const forms = [...document.querySelectorAll("#content-main form")];
const fields = forms.flatMap((form) => [...form.querySelectorAll(TEXTS)]);
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

// Django's scripts, which add rows, start after this one.
const isLoaded = new Promise((resolve) => addEventListener("load", () => setTimeout(resolve)));

/** Adds the rows that the user had added, such as the members of a workspace, to be filled in. */
async function addRows(form, valueOf) {
  await isLoaded;
  for (const total of form.querySelectorAll("[name$=-TOTAL_FORMS]"))
    for (let count = Number(total.value); count < Number(valueOf(total.name)); count++)
      total.closest(".inline-group").querySelector(".add-row a").click();
}

const { viewer, restored } = document.getElementById("content-start").dataset;
const report = (form) => {
  for (const field of form.querySelectorAll(".admin-autocomplete")) field.dispatchEvent(new Event("change"));
  const note = document.createElement("p");
  Object.assign(note, { className: "errornote", role: "alert", textContent: restored });
  form.before(note);
};
submitted.connect(viewer, report, addRows);
