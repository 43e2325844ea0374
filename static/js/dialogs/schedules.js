// The dialog of a session's schedules: the messages that are sent at set times.
import { fetchText, postForm } from "../net/http.js";
import { readTab, writeTab } from "../net/storage.js";
import { createElement, fillFields, openDialog, parseHtml, patchElement, readFields } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { localizeTimes } from "../ui/time.js";
import { showToast } from "../ui/toast.js";

let dialog = null;
let pendingRequest = null; // a promise, while a request is pending
let requestCount = 0;
const REFRESH_MS = 10_000;

const body = () => dialog.querySelector(".dialog-body");
const formOf = (name) => dialog.querySelector(`#schedule-form-${name}`);
const openerOf = (name) => dialog.querySelector(`[data-edits="${name}"]`);

/** Opens the dialog. With a text, also opens the form for a new schedule with this text. */
export async function openSchedules(session, text = "") {
  const html = await fetchDialog(`/sessions/${session}/schedules`);
  if (html === null) return showToast(words.notLoaded);
  if (document.querySelector("dialog:modal")) return;
  dialog = parseHtml(html).querySelector("dialog");
  dialog.addEventListener("click", handleClick);
  dialog.addEventListener("submit", handleSubmit);
  dialog.addEventListener("change", handleSwitch);
  dialog.addEventListener("input", ({ target }) => storeDraft(target.closest(".schedule-form")));
  localizeTimes(dialog);
  openDialog(dialog);
  keepCurrent();
  const isNew = text || !dialog.querySelector(".schedule-list");
  if (isNew && formOf("new")) toggleForm("new", true);
  restoreDrafts()?.elements.text.focus();
  if (!text || !formOf("new")) return;
  formOf("new").elements.text.value = text;
  storeDraft(formOf("new"));
}

const fetchDialog = (address) => fetchText(address, { headers: { "HX-Request": "true" } });

// The list shows the changes of other users and tabs, and the results of runs.

function keepCurrent() {
  const refreshAfterTurn = ({ detail }) => detail?.own && refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  document.addEventListener("parley:list-changed", refreshAfterTurn);
  dialog.addEventListener("close", () => {
    clearInterval(timer);
    document.removeEventListener("parley:list-changed", refreshAfterTurn);
  });
}

/** Shows the present list. Does nothing while the user changes a schedule or a request is pending. */
async function refresh() {
  const isBusy = () => pendingRequest || body().querySelector(".schedule-list .schedule-form:not([hidden])");
  if (document.hidden || isBusy()) return;
  const [shown, count] = [dialog, requestCount];
  const html = await fetchDialog(body().dataset.at);
  if (html === null || dialog !== shown || !dialog.open || requestCount !== count || isBusy()) return;
  const fresh = parseHtml(html).querySelector(".dialog-body");
  localizeTimes(fresh);
  showList(...[body(), fresh].map((each) => each.querySelector(".schedule-list, .schedule-none")));
  if (!dialog.contains(document.activeElement)) body().focus();
}

/** Replaces the list. Schedules that are still listed keep their elements, and so the focus. */
function showList(list, fresh) {
  if (list.nodeName !== fresh.nodeName) return list.replaceWith(fresh);
  if (fresh.matches(".schedule-none")) return;
  for (const item of [...list.children]) if (!fresh.querySelector(`#${item.id}`)) item.remove();
  for (const item of [...fresh.children]) {
    const before = list.querySelector(`#${item.id}`);
    if (before) patchElement(before, item);
    else list.append(item);
  }
  for (const form of list.querySelectorAll("form")) form.reset();
}

// Drafts: what the user has entered survives closing the dialog and a reload, until it is saved or cancelled.

const draftName = (form) => `parley:${body().dataset.at}#${form.id}`;
const removeDraft = (form) => writeTab(draftName(form), null);
const fieldsOf = (form) => [...form.elements].filter(({ name, type }) => name && type !== "hidden");

function storeDraft(form) {
  if (form) writeTab(draftName(form), readFields(fieldsOf(form)));
}

/** Fills in and shows the forms with drafts, except a refused form. Returns the last one that was hidden, or null. */
function restoreDrafts(refusedForm = null) {
  let last = null;
  for (const form of dialog.querySelectorAll(".schedule-form")) {
    if (form === refusedForm || !fillFields(fieldsOf(form), readTab(draftName(form))) || !form.hidden) continue;
    showForm(form.id.slice("schedule-form-".length), true);
    last = form;
  }
  return last;
}

function toggleForm(name, isShown) {
  showForm(name, isShown);
  (isShown ? formOf(name).elements.text : openerOf(name)).focus();
}

function showForm(name, isShown) {
  const opener = openerOf(name);
  formOf(name).hidden = !isShown;
  opener.setAttribute("aria-expanded", String(isShown));
  if (name === "new") opener.hidden = isShown;
  if (isShown) listZones();
}

/** Adds the names of time zones to the field. Called on first use, because there are hundreds. */
function listZones() {
  const list = dialog.querySelector("#schedule-zones");
  if (list.children.length) return;
  list.append(...(Intl.supportedValuesOf?.("timeZone") ?? []).map((value) => createElement("option", { value })));
}

function handleClick({ target }) {
  if (target === dialog) return dialog.close();
  if (target.closest("a[href^='#']")) return dialog.close();
  const button = target.closest("button");
  if (!button) return;
  const { edits, cancels, schedule, part } = button.dataset;
  if (edits) toggleForm(edits, button.getAttribute("aria-expanded") !== "true");
  else if (cancels) cancelForm(cancels);
  else if (schedule) sendForm({ part, schedule }, button.id);
}

/** Closes a form and empties it. */
function cancelForm(name) {
  removeDraft(formOf(name));
  formOf(name).reset();
  toggleForm(name, false);
}

function handleSubmit(event) {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  sendForm(new FormData(form), "");
}

/** Sends the new state of a switch. */
function handleSwitch({ target }) {
  if (target.name === "on") sendNext(new FormData(target.form), target.id);
}

/** Sends a form after the response to the previous request. */
async function sendNext(values, focusOn) {
  while (pendingRequest) await pendingRequest;
  return sendForm(values, focusOn);
}

/** Sends a form and shows the response. The focus stays on the element with the id `focusOn`, if it still exists. */
async function sendForm(values, focusOn) {
  if (pendingRequest) return;
  requestCount++;
  const form = values instanceof FormData ? values : new FormData();
  if (form !== values) for (const [name, value] of Object.entries(values)) form.append(name, value);
  pendingRequest = postForm(body().dataset.at, form);
  const { answer } = await pendingRequest;
  pendingRequest = null;
  if (!answer?.html) return showRefusal(answer?.message, focusOn);
  if (answer.done) removeSentDraft(form);
  const fresh = parseHtml(answer.html);
  localizeTimes(fresh);
  const refusedForm = fresh.querySelector(".schedule-form:not([hidden])");
  body().replaceChildren(fresh);
  restoreDrafts(refusedForm); // the user may be filling in other forms
  moveFocus(refusedForm, focusOn);
  if (answer.done && form.get("part") !== "switch") showDone(answer.done, form); // a switch shows its own state
}

/** Shows why a request was refused. Turns a switch back. */
function showRefusal(message, focusOn) {
  const toggled = document.getElementById(focusOn);
  if (toggled?.matches("[role=switch]")) toggled.checked = toggled.defaultChecked;
  showToast(message || words.notDone);
}

/** Forgets the draft that was sent, unless the user has changed it since. */
function removeSentDraft(form) {
  const sent = formOf(form.get("schedule") || "new");
  const isSame = sent && JSON.stringify([...new FormData(sent)]) === JSON.stringify([...form]);
  if (isSame && form.has("text")) removeDraft(sent);
}

function moveFocus(refusedForm, focusOn) {
  const refusedField = refusedForm?.querySelector("[aria-invalid=true]") ?? refusedForm?.elements.text;
  (refusedField ?? document.getElementById(focusOn) ?? body()).focus();
}

function showDone(done, form) {
  const [part, schedule] = [form.get("part"), form.get("schedule")];
  const undo = { label: words.undo, run: () => sendNext({ part: "restore", schedule }, "") };
  showToast(done, { action: part === "remove" ? undo : null });
}
