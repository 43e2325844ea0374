// The open share dialog: keeps the list of people up to date and finds people by name.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import { post } from "../net/http.js";
import { dress } from "../ui/faces.js";
import { fill, words } from "../ui/i18n.js";
import { toast } from "../ui/toast.js";

const EVERY = 4000;

/** Keeps the list of people in the dialog up to date, and in it new links and what is chosen, until it closes. */
export function follow(dialog) {
  const timer = setInterval(() => {
    const people = dialog.querySelector("#share-people");
    if (people && !document.hidden && !people.contains(document.activeElement)) htmx.trigger(people, "refresh");
  }, EVERY);
  let sent = null; // the form that waits for its answer
  let links = []; // created since the dialog was opened; no later response contains them
  let choices = [];
  const coming = ({ detail }) => isOf(dialog, detail.ctx) && (choices = choicesIn(dialog));
  const drawn = ({ detail }) => {
    dress(dialog);
    if (isOf(dialog, detail.ctx)) choose(dialog, choices, sent);
    if (detail.ctx.request?.method.toUpperCase() !== "POST") return; // a frame of the session is swapped in, too
    if (sent?.dataset.removes && detail.ctx.response.status === 200) offerUndo(dialog, sent);
    sent = null;
    const link = dialog.querySelector(".made-link");
    links = keepLinks(dialog, link, links);
    land(dialog, link);
  };
  const sending = ({ target }) => (sent = target.closest("form"));
  const failed = ({ detail: { ctx } }) => {
    const form = ctx?.sourceElement;
    if (dialog.contains(form) && form.matches("form[hx-trigger=change]")) form.reset(); // shows what the server has
  };
  const life = new AbortController();
  const { signal } = life;
  dialog.addEventListener("submit", sending, { signal });
  dialog.addEventListener("change", sending, { signal });
  dialog.addEventListener("input", find, { signal });
  document.addEventListener("htmx:before:swap", coming, { signal });
  document.addEventListener("htmx:after:swap", drawn, { signal });
  for (const name of ["htmx:error", "htmx:response:error"]) document.addEventListener(name, failed, { signal });
  signal.addEventListener("abort", () => clearInterval(timer));
  dialog.addEventListener("close", () => life.abort(), { signal });
}

const isOf = (dialog, { target }) => target === dialog.querySelector(".dialog-body");

// What a form asks for, until its button is pressed: a response to another one brings the form without it.
const CHOICES = [".adding [data-find]", ".adding [name=role]", "#invite-uses", "#invite-role"];
const ADDED = ".adding [name=user]";

/** Returns what is chosen and typed in the forms with a button, as selectors of fields and their values. */
function choicesIn(dialog) {
  const person = dialog.querySelector(`${ADDED}:checked`);
  const fields = CHOICES.map((selector) => [selector, dialog.querySelector(selector)?.value]);
  return [[ADDED, person?.value], ...fields].filter(([, value]) => value);
}

/** Chooses the same again in the forms of a response, without the name that was looked for once that person is added. */
function choose(dialog, choices, sent) {
  for (const [selector, value] of choices) {
    const fields = [...dialog.querySelectorAll(selector)];
    const isDone = selector === CHOICES[0] && sent?.matches(".adding") && !dialog.querySelector(".errors");
    const field = selector === ADDED ? fields.find((each) => each.value === value) : fields[0];
    if (!field || isDone) continue;
    if (selector === ADDED) field.checked = true;
    else field.value = value;
    find({ target: field });
  }
}

/** Offers Undo for a removed member; the removal of a guest, who needs a new invitation, was confirmed before. */
function offerUndo(dialog, form) {
  const { removes: name, role, again } = form.dataset;
  const user = form.elements.user.value;
  const undo = async () => {
    try {
      await post(again, { user, role }, words.notDone);
      htmx.trigger(dialog.querySelector("#share-people"), "refresh");
    } catch (error) {
      toast(error.message);
    }
  };
  toast(fill(words.personRemoved, { name }), { action: again ? { label: words.undo, run: undo } : null });
}

/** Puts back the links that the response has replaced, below a new one, unless they have ended; returns all. */
function keepLinks(dialog, link, links) {
  const works = ({ dataset }) => dialog.querySelector(`.links [data-invitation="${dataset.invitation}"]`);
  const kept = links.filter(works);
  (link ?? dialog.querySelector("#invite-title")).after(...kept);
  return link ? [link, ...kept] : kept;
}

/** Moves the focus to a new link, or off a button that has disappeared with its row. */
function land(dialog, link) {
  const field = link?.querySelector("input");
  if (!field && dialog.contains(document.activeElement)) return;
  (field ?? dialog.querySelector(".dialog-body")).focus();
  field?.select();
}

function find({ target }) {
  if (!target.matches("[data-find]")) return;
  const wanted = target.value.toLowerCase();
  const list = document.getElementById(target.dataset.find);
  for (const row of list.children) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
