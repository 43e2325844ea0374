// Keeps what the user has sent with a form. If the login has ended, or the form has expired, another page answers, and
// the form is filled in again when the user comes back to it.
import { readTab, writeTab } from "../net/storage.js";
import { fireInput, isChoice } from "./dom.js";

const NAME = "parley:form";
// Secrets and files are not kept, nor the fields that only the admin's own scripts use.
const LEFT_OUT =
  "button, fieldset, [type=password], [type=file], [data-secret], [name=csrfmiddlewaretoken], " +
  "[name*=__prefix__], .filtered[name$=_old]";
// The stored version that the user has changed. It is restored, too, so that the server can refuse an older one.
const VERSION = "[name=revision], [name=version], [name^=initial-]";
// The hidden fields of rows that the user has added in the admin, and their number.
const OF_NEW_ROWS = ".inline-related:not(.has_original) *, [name$=-TOTAL_FORMS]";

const fieldsOf = (form) => [...form.elements].filter((field) => field.name && !field.matches(LEFT_OUT));
const keyOf = (field) => JSON.stringify(isChoice(field) ? [field.name, field.value] : [field.name]);

/** Returns the values of a form by field: a text, whether a choice is chosen, or the chosen options with their texts. */
const readValues = (form) => fieldsOf(form).map((field) => [keyOf(field), readValue(field)]);

function readValue(field) {
  if (field.selectedOptions) return [...field.selectedOptions].map(({ value, text }) => [value, text]);
  return isChoice(field) ? field.checked : field.value;
}

function writeValue(field, value) {
  if (field.options) choose(field, value);
  else field[isChoice(field) ? "checked" : "value"] = value;
}

/** Chooses options, and adds those that are missing, because a field that searches has only the chosen one. */
function choose(select, chosen) {
  for (const [value, text] of chosen)
    if (![...select.options].some((option) => option.value === value)) select.add(new Option(text, value));
  for (const option of select.options) option.selected = chosen.some(([value]) => value === option.value);
}

/** Returns what a form is for: its address and its hidden fields, such as the id of a row. */
function purposeOf(form) {
  const isPurpose = (field) => field.type === "hidden" && !field.matches(VERSION) && !field.matches(OF_NEW_ROWS);
  const hidden = fieldsOf(form).filter(isPurpose);
  return JSON.stringify([form.getAttribute("action"), ...hidden.map(({ name, value }) => [name, value])]);
}

/** Returns whether the user comes back to the form, instead of to its page after it was saved or refused. */
function isReturning() {
  const [{ type } = {}] = performance.getEntriesByType("navigation");
  if (type === "back_forward" || type === "reload") return true;
  return URL.canParse(document.referrer) && new URL(document.referrer).pathname.startsWith("/accounts/");
}

/** Fills in the fields that have a value in `values`, and removes these values. Returns whether there was one. */
function fillIn(form, values) {
  const isFilled = (field) => values.has(keyOf(field)) && (field.type !== "hidden" || field.matches(VERSION));
  const filled = fieldsOf(form).filter(isFilled);
  for (const field of filled) writeValue(field, values.get(keyOf(field)));
  for (const field of filled) values.delete(keyOf(field));
  return filled.some(({ type }) => type !== "hidden");
}

async function restore({ purpose, values }, report, addRows) {
  const form = [...document.forms].find((each) => purposeOf(each) === purpose);
  if (!form || JSON.stringify(readValues(form)) === JSON.stringify(values)) return;
  const left = new Map(values);
  if (!fillIn(form, left)) return;
  form.closest("details")?.setAttribute("open", "");
  const field = fieldsOf(form).find(({ type }) => type !== "hidden");
  fireInput(field);
  field.focus();
  await addRows?.(form, (name) => left.get(JSON.stringify([name])));
  fillIn(form, left);
  report(form);
}

/**
 * Keeps what the user `viewer` sends with the forms of this page. If a form is filled in again, awaits
 * `addRows(form, valueOf)`, which adds the rows that the user had added, and then calls `report(form)`. `valueOf(name)`
 * returns the kept value of a hidden field.
 */
export function connect(viewer, report, addRows = null) {
  const path = location.pathname;
  const kept = readTab(NAME);
  if (kept?.path === path && kept.viewer === viewer && isReturning()) restore(kept, report, addRows);
  else writeTab(NAME, null);
  document.addEventListener("submit", ({ target: form }) => {
    if (!fieldsOf(form).some(({ type }) => type !== "hidden")) return; // only a button
    writeTab(NAME, { path, viewer, purpose: purposeOf(form), values: readValues(form) });
  });
}
