// Lets the browser ask before the user leaves a form with unsaved changes.
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
