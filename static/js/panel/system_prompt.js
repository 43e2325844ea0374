// The system prompt in the panel. If several users edit it, the page shows a conflict before one is overwritten.
import * as editing from "../messages/editors.js";
import { live, page } from "../messages/session.js";
import { readTab, writeTab } from "../net/storage.js";
import { onAction, TOUCH } from "../ui/commands.js";
import * as conflict from "../ui/conflict_form.js";
import { words } from "../ui/i18n.js";
import { connectAll } from "../ui/loading.js";
import { showNotice } from "../ui/notice.js";

const PROMPT_ID = "system_prompt";
const DRAFT_NAME = `parley:prompt:${page.dataset.session}`;
const byId = (id) => document.getElementById(id);
let seenPrompt = null; // the prompt that the user has seen
let savingText = null; // the text that is being saved
let savedAt = 0; // when the server last confirmed an edit of this page, in ms since the page was opened

const isChanged = () => byId("prompt") !== null && seenPrompt !== null && byId("prompt").value !== seenPrompt;

/** Returns the prompt in new content. Replaces its form there by the present one, so that the user's edit stays. */
export function extractPrompt(fresh) {
  const field = fresh.querySelector("#prompt");
  const mine = byId("prompt");
  if (!field) return null;
  const serverPrompt = field.value;
  if (mine) fresh.querySelector("#prompt-form").replaceWith(byId("prompt-form").cloneNode(true));
  return serverPrompt;
}

/** Returns whether content that was requested at the time `began`, in ms, may have the prompt before the user's edit. */
export const isOlderThanEdit = (began) => began < savedAt;

/** Shows the prompt of the server, or a conflict if the user has an unsaved edit. */
export function showPrompt(serverPrompt) {
  editing.drawEditors();
  const field = byId("prompt");
  if (!field || serverPrompt === null) return;
  if (!("ready" in field.dataset)) prepareField(field);
  if (seenPrompt === null || !isChanged()) acceptPrompt(serverPrompt);
  else if (serverPrompt === field.value) acceptPrompt(serverPrompt);
  else if (serverPrompt === seenPrompt) endConflict();
  else if (serverPrompt !== savingText) showChoice();
}

/** Hides the choice, if there is one: another page has restored the prompt that the user has changed. */
function endConflict() {
  conflict.hideConflict(byId("prompt-conflict"));
  storeEdit();
}

function prepareField(field) {
  field.dataset.ready = "";
  const draft = readTab(DRAFT_NAME);
  if (draft) field.value = draft.text;
  seenPrompt = draft?.seen ?? null;
  field.addEventListener("input", storeEdit);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("prompt-form").requestSubmit();
  });
  byId("prompt-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (conflict.isConflictOpen(byId("prompt-conflict"))) conflict.focusChoice(byId("prompt-conflict"));
    else if (isChanged()) savePrompt();
  });
  if (draft) storeEdit();
}

/** Stores an unsaved edit and its original prompt, so that the edit survives a reload. */
function storeEdit() {
  writeTab(DRAFT_NAME, isChanged() ? { text: byId("prompt").value, seen: seenPrompt } : null);
  showState(isChanged() ? words.promptUnsaved : "");
}

async function savePrompt() {
  savingText = byId("prompt").value;
  try {
    await live.request({ type: "set_system_prompt", system_prompt: savingText, seen: seenPrompt });
    seenPrompt = savingText;
    savedAt = performance.now();
    storeEdit();
    if (!isChanged()) showState(words.promptSaved);
  } catch (refusal) {
    if (refusal.code !== "stale" || !(await showChoice())) showNotice(refusal.message, { about: "set_system_prompt" });
  } finally {
    savingText = null;
  }
}

/** Shows a saved prompt in place of the edit. */
function acceptPrompt(serverPrompt) {
  const field = byId("prompt");
  const isChangedElsewhere = seenPrompt !== null && serverPrompt !== seenPrompt && serverPrompt !== savingText;
  if (field.value !== serverPrompt) field.value = serverPrompt;
  seenPrompt = serverPrompt;
  conflict.hideConflict(byId("prompt-conflict"));
  writeTab(DRAFT_NAME, null);
  if (isChangedElsewhere) showState(words.promptChanged);
  else showState(byId("prompt-state").textContent === words.promptSaved ? words.promptSaved : "");
}

/** Shows the choice between the user's prompt and a newer one. */
async function showChoice() {
  const field = byId("prompt");
  const useSaved = ({ current }) => {
    acceptPrompt(current);
    showState("");
    field.focus();
  };
  const keepMine = ({ current }) => {
    seenPrompt = current;
    conflict.hideConflict(byId("prompt-conflict"));
    savePrompt();
  };
  const present = await conflict.showConflict({
    of: PROMPT_ID,
    place: byId("prompt-conflict"),
    field,
    useSaved,
    keepMine,
  });
  showState(isChanged() ? words.promptUnsaved : "");
  return present;
}

function showState(state) {
  if (!byId("prompt-state")) return; // the session has been archived since
  byId("prompt-state").textContent = state;
  if (isChanged()) editing.startEditing(PROMPT_ID, byId("prompt"));
  else editing.stopEditing(PROMPT_ID);
  const isDone = !isChanged() && ["prompt-save", "prompt-undo"].includes(document.activeElement?.id);
  if (isDone) byId(TOUCH.matches ? "panel" : "prompt").focus({ preventScroll: true }); // its button is hidden next
  for (const id of ["prompt-save", "prompt-undo"])
    byId(id).hidden = !isChanged() || conflict.isConflictOpen(byId("prompt-conflict"));
}

export function connect() {
  connectAll(editing);
  onAction("prompt-undo", () => {
    byId("prompt").value = seenPrompt;
    storeEdit();
    byId("prompt").focus();
  });
}
