// The system prompt in the panel, which several people can edit without overwriting each other unseen.
import * as editing from "../messages/editing.js";
import { live, page } from "../messages/session.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import { on, TOUCH } from "../ui/commands.js";
import * as clash from "../ui/conflict_form.js";
import { words } from "../ui/i18n.js";
import { connectAll } from "../ui/late.js";
import { notice } from "../ui/notice.js";

const OF = "system_prompt";
const DRAFT = `parley:prompt:${page.dataset.session}`;
const at = (id) => document.getElementById(id);
let seen = null; // the prompt that the user has seen
let saving = null; // the text that is being saved

const isChanged = () => at("prompt") !== null && seen !== null && at("prompt").value !== seen;

/** Removes the prompt from new content, so that the user's edit stays; returns it. */
export function keep(fresh) {
  const field = fresh.querySelector("#prompt");
  const mine = at("prompt");
  if (!field) return null;
  const told = field.value;
  if (mine) fresh.querySelector("#prompt-form").replaceWith(at("prompt-form").cloneNode(true));
  return told;
}

/** Shows the present prompt, or a conflict beside the user's edit. */
export function follow(told) {
  editing.draw();
  const field = at("prompt");
  if (!field || told === null) return;
  if (!("ready" in field.dataset)) prepare(field);
  if (seen === null || !isChanged()) settle(told);
  else if (told === field.value) settle(told);
  else if (told !== seen && told !== saving) choose();
}

function prepare(field) {
  field.dataset.ready = "";
  const draft = keptInTab(DRAFT);
  if (draft) field.value = draft.text;
  seen = draft?.seen ?? null;
  field.addEventListener("input", written);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("prompt-form").requestSubmit();
  });
  at("prompt-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (clash.isOpen(at("prompt-clash"))) clash.point(at("prompt-clash"));
    else if (isChanged()) save();
  });
  if (draft) written();
}

/** Stores an unsaved edit and the prompt that it started from, so that it survives a reload. */
function written() {
  keepInTab(DRAFT, isChanged() ? { text: at("prompt").value, seen } : null);
  show(isChanged() ? words.promptUnsaved : "");
}

async function save() {
  saving = at("prompt").value;
  try {
    await live.request({ type: "set_system_prompt", system_prompt: saving, seen });
    seen = saving;
    written();
    if (!isChanged()) show(words.promptSaved);
  } catch (refusal) {
    if (refusal.code !== "stale" || !(await choose())) notice(refusal.message, { about: "set_system_prompt" });
  } finally {
    saving = null;
  }
}

/** Shows the present prompt without an edit. */
function settle(told) {
  const field = at("prompt");
  const isNews = seen !== null && told !== seen && told !== saving;
  if (field.value !== told) field.value = told;
  seen = told;
  clash.hide(at("prompt-clash"));
  keepInTab(DRAFT, null);
  if (isNews) show(words.promptChanged);
  else show(at("prompt-state").textContent === words.promptSaved ? words.promptSaved : "");
}

/** Shows the choice between the user's prompt and a newer one. */
async function choose() {
  const field = at("prompt");
  const take = ({ current }) => {
    settle(current);
    show("");
    field.focus();
  };
  const stand = ({ current }) => {
    seen = current;
    clash.hide(at("prompt-clash"));
    save();
  };
  const present = await clash.show({ of: OF, place: at("prompt-clash"), field, take, keep: stand });
  show(isChanged() ? words.promptUnsaved : "");
  return present;
}

function show(state) {
  if (!at("prompt-state")) return; // the session has been archived since
  at("prompt-state").textContent = state;
  if (isChanged()) editing.begin(OF, at("prompt"));
  else editing.end(OF);
  const isDone = !isChanged() && ["prompt-save", "prompt-undo"].includes(document.activeElement?.id);
  if (isDone) at(TOUCH.matches ? "panel" : "prompt").focus({ preventScroll: true }); // the button is about to be hidden
  for (const id of ["prompt-save", "prompt-undo"]) at(id).hidden = !isChanged() || clash.isOpen(at("prompt-clash"));
}

export function connect() {
  connectAll(editing);
  on("prompt-undo", () => {
    at("prompt").value = seen;
    written();
    at("prompt").focus();
  });
}
