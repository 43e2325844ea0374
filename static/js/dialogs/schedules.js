// The dialog of a session's schedules: the messages that are sent at set times.
import { postForm, textAt } from "../net/http.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import { answerOf, enteredIn, fillFields, make, parse } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";

let dialog = null;
let sending = null; // a promise, while an answer is awaited

const body = () => dialog.querySelector(".dialog-body");
const formOf = (name) => dialog.querySelector(`#schedule-form-${name}`);
const openerOf = (name) => dialog.querySelector(`[data-edits="${name}"]`);

/** Opens the dialog; with a text, the form for a new schedule with it. */
export async function openSchedules(session, text = "") {
  const html = await textAt(`/sessions/${session}/schedules`, { headers: { "HX-Request": "true" } });
  if (html === null) return toast(words.notLoaded);
  if (document.querySelector("dialog:modal")) return;
  dialog = parse(html).querySelector("dialog");
  dialog.addEventListener("click", pressed);
  dialog.addEventListener("submit", submitted);
  dialog.addEventListener("change", changed);
  dialog.addEventListener("input", ({ target }) => remember(target.closest(".schedule-form")));
  localise(dialog);
  answerOf(dialog);
  const isNew = text || !dialog.querySelector(".schedule-list");
  if (isNew && formOf("new")) toggle("new", true);
  restore()?.elements.text.focus();
  if (!text || !formOf("new")) return;
  formOf("new").elements.text.value = text;
  remember(formOf("new"));
}

// Drafts: what was entered survives closing the dialog and a reload, until it is saved or cancelled.

const draftOf = (form) => `parley:${body().dataset.at}#${form.id}`;
const forget = (form) => keepInTab(draftOf(form), null);
const fieldsOf = (form) => [...form.elements].filter(({ name, type }) => name && type !== "hidden");

function remember(form) {
  if (form) keepInTab(draftOf(form), enteredIn(fieldsOf(form)));
}

/** Fills the forms in that have a draft, except a refused one, and shows them. Returns the last one that was hidden. */
function restore(wrong = null) {
  let last = null;
  for (const form of dialog.querySelectorAll(".schedule-form")) {
    if (form === wrong || !fillFields(fieldsOf(form), keptInTab(draftOf(form))) || !form.hidden) continue;
    show(form.id.slice("schedule-form-".length), true);
    last = form;
  }
  return last;
}

function toggle(name, isShown) {
  show(name, isShown);
  (isShown ? formOf(name).elements.text : openerOf(name)).focus();
}

function show(name, isShown) {
  const opener = openerOf(name);
  formOf(name).hidden = !isShown;
  opener.setAttribute("aria-expanded", String(isShown));
  if (name === "new") opener.hidden = isShown;
  if (isShown) listZones();
}

/** Offers the names of time zones, once they may be needed: there are hundreds. */
function listZones() {
  const list = dialog.querySelector("#schedule-zones");
  if (list.children.length) return;
  list.append(...(Intl.supportedValuesOf?.("timeZone") ?? []).map((value) => make("option", { value })));
}

function pressed({ target }) {
  if (target === dialog) return dialog.close();
  if (target.closest("a[href^='#']")) return dialog.close();
  const button = target.closest("button");
  if (!button) return;
  const { edits, cancels, schedule, part } = button.dataset;
  if (edits) toggle(edits, button.getAttribute("aria-expanded") !== "true");
  else if (cancels) cancel(cancels);
  else if (schedule) send({ part, schedule }, button.id);
}

/** Closes a form and empties it. */
function cancel(name) {
  forget(formOf(name));
  formOf(name).reset();
  toggle(name, false);
}

function submitted(event) {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  send(new FormData(form), "");
}

/** A switch that is turned while another answer is awaited is not lost: it waits for its turn. */
async function changed({ target }) {
  if (target.name !== "on") return;
  const values = new FormData(target.form);
  while (sending) await sending;
  send(values, target.id);
}

/** Sends a form, and shows the answer. The focus stays on the element with this id, if it is still there. */
async function send(values, focusOn) {
  if (sending) return;
  const form = values instanceof FormData ? values : new FormData();
  if (form !== values) for (const [name, value] of Object.entries(values)) form.append(name, value);
  sending = postForm(body().dataset.at, form);
  const { answer } = await sending;
  sending = null;
  if (!answer?.html) return refused(answer?.message, focusOn);
  if (answer.done) forgetSent(form);
  const fresh = parse(answer.html);
  localise(fresh);
  const wrong = fresh.querySelector(".schedule-form:not([hidden])");
  body().replaceChildren(fresh);
  restore(wrong); // what is being entered in other forms
  land(wrong, focusOn);
  if (answer.done && form.get("part") !== "switch") tell(answer.done, form); // a switch says itself how it is
}

/** Says why nothing was done; a switch goes back. */
function refused(message, focusOn) {
  const turned = document.getElementById(focusOn);
  if (turned?.matches("[role=switch]")) turned.checked = turned.defaultChecked;
  toast(message || words.notDone);
}

/** Forgets the draft that was sent, unless the user has typed on. */
function forgetSent(form) {
  const sent = formOf(form.get("schedule") || "new");
  const isSame = sent && JSON.stringify([...new FormData(sent)]) === JSON.stringify([...form]);
  if (isSame && form.has("text")) forget(sent);
}

function land(wrong, focusOn) {
  (wrong?.elements.text ?? document.getElementById(focusOn) ?? body()).focus();
}

function tell(done, form) {
  const [part, schedule] = [form.get("part"), form.get("schedule")];
  const undo = { label: words.undo, run: () => send({ part: "restore", schedule }, "") };
  toast(done, { action: part === "remove" ? undo : null });
}
