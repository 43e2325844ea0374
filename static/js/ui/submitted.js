// Keeps what the user has sent with a form. If the login has ended, or the form has expired, another page answers, and
// the form is filled in again when the user comes back to it.
import { readTab, writeTab } from "../net/storage.js";
import { fillFields, fireInput, readFields } from "./dom.js";

const NAME = "parley:submitted";
// Secrets and files are not kept.
const LEFT_OUT = "button, fieldset, [type=password], [type=file], [data-secret], [name=csrfmiddlewaretoken]";
// The stored version that the user has changed. It is restored, too, so that the server can refuse an older one.
const VERSION = "[name=revision], [name=version], [name^=initial-]";

const fieldsOf = (form) => [...form.elements].filter((field) => field.name && !field.matches(LEFT_OUT));

/** Returns what a form is for: its address and its hidden fields, such as the id of a row. */
function purposeOf(form) {
  const hidden = fieldsOf(form).filter((field) => field.type === "hidden" && !field.matches(VERSION));
  return JSON.stringify([form.getAttribute("action"), ...hidden.map(({ name, value }) => [name, value])]);
}

/** Returns whether the user comes back to the form, instead of to its page after it was saved or refused. */
function isReturning() {
  const [{ type } = {}] = performance.getEntriesByType("navigation");
  if (type === "back_forward" || type === "reload") return true;
  return URL.canParse(document.referrer) && new URL(document.referrer).pathname.startsWith("/accounts/");
}

function restore({ purpose, values }, report) {
  const form = [...document.forms].find((each) => purposeOf(each) === purpose);
  if (!form || JSON.stringify(readFields(fieldsOf(form))) === JSON.stringify(values)) return;
  if (!fillFields(fieldsOf(form), values)) return;
  form.closest("details")?.setAttribute("open", "");
  const field = fieldsOf(form).find(({ type }) => type !== "hidden");
  fireInput(field);
  field.focus();
  report(form);
}

/** Keeps the forms of the page of a user. Calls `report(form)` if a form was filled in again. */
export function connect(viewer, report) {
  const path = location.pathname;
  const kept = readTab(NAME);
  if (kept?.path === path && kept.viewer === viewer && isReturning()) restore(kept, report);
  else writeTab(NAME, null);
  document.addEventListener("submit", ({ target: form }) => {
    if (!fieldsOf(form).some(({ type }) => type !== "hidden")) return; // only a button
    writeTab(NAME, { path, viewer, purpose: purposeOf(form), values: readFields(fieldsOf(form)) });
  });
}
