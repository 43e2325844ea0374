// The share dialog while it is open: keeps the list of people up to date, filters it, and offers Undo.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import { post } from "../net/http.js";
import { updateFaces } from "../ui/faces.js";
import { format, words } from "../ui/i18n.js";
import { announce } from "../ui/notice.js";
import { showToast } from "../ui/toast.js";

const REFRESH_MS = 4000;
let isConnected = false;

/**
 * Keeps the list of people up to date until the dialog closes. New links and the user's choices survive updates. Called
 * twice if the user closes the dialog and opens it again before this module is loaded.
 */
export function connectDialog(dialog) {
  if (isConnected) return;
  isConnected = true;
  const timer = setInterval(() => {
    const people = dialog.querySelector("#share-people");
    if (people && !document.hidden && !people.contains(document.activeElement)) htmx.trigger(people, "refresh");
  }, REFRESH_MS);
  let sentForm = null; // the form whose response is pending
  let links = []; // created since the dialog was opened; no later response contains them
  let choices = [];
  let heading = "";
  const beforeSwap = ({ detail }) => {
    if (!isBodyOf(dialog, detail.ctx)) return;
    choices = readChoices(dialog);
    heading = readHeading(dialog);
  };
  const afterSwap = ({ detail }) => {
    updateFaces(dialog);
    const now = dialog.querySelector("[data-approvers-now]");
    if (now) document.getElementById("main").dataset.approvers = now.dataset.approversNow;
    if (isBodyOf(dialog, detail.ctx)) restoreChoices(dialog, choices, sentForm);
    if (detail.ctx.request?.method.toUpperCase() !== "POST") return; // other content is also swapped in
    if (sentForm?.dataset.removes && detail.ctx.response.status === 200) offerUndo(dialog, sentForm);
    sentForm = null;
    announceResult(dialog, heading);
    const link = dialog.querySelector(".made-link");
    links = keepLinks(dialog, link, links);
    moveFocus(dialog, link);
  };
  const rememberForm = ({ target }) => (sentForm = target.closest("form"));
  const handleError = ({ detail: { ctx } }) => {
    const form = ctx?.sourceElement;
    if (dialog.contains(form) && form.matches("form[hx-trigger=change]")) form.reset(); // shows what the server has
  };
  const listeners = new AbortController();
  const { signal } = listeners;
  dialog.addEventListener("submit", rememberForm, { signal });
  dialog.addEventListener("change", rememberForm, { signal });
  dialog.addEventListener("input", filterRows, { signal });
  document.addEventListener("htmx:before:swap", beforeSwap, { signal });
  document.addEventListener("htmx:after:swap", afterSwap, { signal });
  for (const name of ["htmx:error", "htmx:response:error"]) document.addEventListener(name, handleError, { signal });
  signal.addEventListener("abort", () => {
    clearInterval(timer);
    isConnected = false;
  });
  dialog.addEventListener("close", () => listeners.abort(), { signal });
}

const isBodyOf = (dialog, { target }) => target === dialog.querySelector(".dialog-body");

// Fields whose values are kept until their form is sent, because the response to another form contains them empty.
const CHOICES = [".adding [data-find]", ".adding [name=role]", "#invite-uses", "#invite-role"];
const PERSON = ".adding [name=user]";

/** Returns what the user has chosen and typed in forms with a button, as pairs of selector and value. */
function readChoices(dialog) {
  const person = dialog.querySelector(`${PERSON}:checked`);
  const fields = CHOICES.map((selector) => [selector, dialog.querySelector(selector)?.value]);
  return [[PERSON, person?.value], ...fields].filter(([, value]) => value);
}

/** Restores choices in the forms of a response. The search text is not restored if its person has been added. */
function restoreChoices(dialog, choices, sent) {
  for (const [selector, value] of choices) {
    const fields = [...dialog.querySelectorAll(selector)];
    const isDone = selector === CHOICES[0] && sent?.matches(".adding") && !dialog.querySelector(".errors");
    const field = selector === PERSON ? fields.find((each) => each.value === value) : fields[0];
    if (!field || isDone) continue;
    if (selector === PERSON) field.checked = true;
    else field.value = value;
    filterRows({ target: field });
  }
}

/** Offers Undo for a removed member. There is no Undo for a guest, whose removal the user has confirmed. */
function offerUndo(dialog, form) {
  const { removes: name, role, again } = form.dataset;
  const user = form.elements.user.value;
  const undo = async () => {
    try {
      await post(again, { user, role }, words.notDone);
      htmx.trigger(dialog.querySelector("#share-people"), "refresh");
    } catch (error) {
      showToast(error.message);
    }
  };
  showToast(format(words.personRemoved, { name }), { action: again ? { label: words.undo, run: undo } : null });
}

const readHeading = (dialog) => dialog.querySelector("#share-people h3")?.textContent.trim() ?? "";

/** Announces what a form has done: the response's own text, or the new number of people. */
function announceResult(dialog, headingBefore) {
  const heading = readHeading(dialog);
  const done = dialog.querySelector(".done")?.textContent.trim();
  if (done) announce(done);
  else if (heading !== headingBefore) announce(heading);
}

/** Puts links that the response has replaced back, below a new link, unless they have been revoked. Returns all. */
function keepLinks(dialog, link, links) {
  const works = ({ dataset }) => dialog.querySelector(`.links [data-invitation="${dataset.invitation}"]`);
  const kept = links.filter(works);
  (link ?? dialog.querySelector("#invite-title")).after(...kept);
  return link ? [link, ...kept] : kept;
}

/** Moves the focus to a new link. If the focused button has disappeared with its row, moves it to another element. */
function moveFocus(dialog, link) {
  const field = link?.querySelector("input");
  if (!field && dialog.contains(document.activeElement)) return;
  (field ?? dialog.querySelector(".dialog-body")).focus();
  field?.select();
}

function filterRows({ target }) {
  if (!target.matches("[data-find]")) return;
  const wanted = target.value.toLowerCase();
  const list = document.getElementById(target.dataset.find);
  for (const row of list.children) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
