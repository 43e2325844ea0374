// Open editors (LIVE-08): reports this user's editors to the others, and shows who else is editing a message.
import { createElement, createIcon } from "../ui/dom.js";
import { aboutPeople } from "../ui/i18n.js";
import { announce } from "../ui/notice.js";
import { keepScrollPosition } from "./scroll.js";
import { isMe, live } from "./session.js";

const PROMPT = "system_prompt";
const RENEW_INTERVAL_MS = 25_000;

// The user's own editors, which others see while they are open.

const ownEditors = new Map(); // forms by the id of what they edit
let renewTimer = 0;

/** Reports to others that the user is editing a message or the system prompt, until `stopEditing`. */
export function startEditing(id, form) {
  if (ownEditors.get(id) === form) return;
  ownEditors.set(id, form);
  report(id, true);
  renewTimer ||= setInterval(reportAll, RENEW_INTERVAL_MS);
  observeLists();
  drawEditors();
}

export function stopEditing(id) {
  if (!ownEditors.delete(id)) return;
  report(id, false);
  drawEditors();
  if (ownEditors.size) return;
  clearInterval(renewTimer);
  renewTimer = 0;
}

/** Sends a report. Failures can be ignored, because reports are repeated, and expire on the server. */
function report(id, open) {
  live.request({ type: "editing", id, open }).catch(() => {});
}

function reportAll() {
  stopHidden();
  for (const id of ownEditors.keys()) report(id, true);
}

/** Ends editors that were removed with their message, or that are in a closed panel. */
function stopHidden() {
  for (const [id, form] of ownEditors) if (!form.checkVisibility()) stopEditing(id);
}

/** Observes the lists while there are editors: messages can be removed, and patches can remove the added lines. */
function observeLists() {
  observer.disconnect();
  if (!ownEditors.size && !otherEditors.size) return;
  for (const list of ["messages", "queue"]) observer.observe(document.getElementById(list), { childList: true });
}

const observer = new MutationObserver(() => {
  stopHidden();
  keepScrollPosition(drawEditors);
});

// The editors of other users. Each frame contains all open ones.

let otherEditors = new Map(); // lists of names by the id of what they edit
let sentences = {};

/** Shows a frame about editors. */
export function show({ editors, words }) {
  otherEditors = new Map();
  for (const { id, user_id: user, name } of editors)
    if (!isMe(user)) otherEditors.set(id, [...(otherEditors.get(id) ?? []), name]);
  sentences = words;
  observeLists();
  keepScrollPosition(drawEditors);
}

/** Shows who is editing the messages and the prompt on the page. */
export function drawEditors() {
  for (const line of document.querySelectorAll(".editing-now[data-own]"))
    if (!otherEditors.has(line.parentElement.id)) line.remove();
  for (const note of document.querySelectorAll(".editing-too"))
    if (!otherEditors.has(note.dataset.of)) removeSharedNote(note);
  drawPromptLine();
  for (const [id, names] of otherEditors) {
    const message = document.getElementById(id);
    if (!message || id === PROMPT) continue;
    const form = message.querySelector(":scope > form.edit");
    if (form) showSharedNote(form, id, names);
    showEditorsLine(message, aboutPeople(sentences.seen, names));
    observer.observe(message, { childList: true });
  }
}

/** Shows a line at the end of a message. It is not a live region, so that it does not interrupt screen readers. */
function showEditorsLine(message, sentence) {
  let line = message.querySelector(":scope > .editing-now");
  if (!line) message.append((line = createElement("p", { className: "editing-now", data: { own: "" } })));
  setLine(line, sentence);
}

/** Shows a note in the form of a user who edits the same message. Announces it if the focus is in the form. */
function showSharedNote(form, id, names) {
  const field = form.querySelector("textarea");
  let note = form.querySelector(".editing-too");
  if (!note) {
    note = createElement("p", { className: "editing-too", id: `${id}-too`, data: { of: id } });
    form.querySelector("label").after(note);
    field.setAttribute("aria-describedby", note.id);
    if (form.contains(document.activeElement)) announce(aboutPeople(sentences.shared, names));
  }
  setLine(note, aboutPeople(sentences.shared, names));
}

function removeSharedNote(note) {
  note.closest("form").querySelector("textarea").removeAttribute("aria-describedby");
  note.remove();
}

function drawPromptLine() {
  const line = document.getElementById("prompt-editing");
  if (!line) return;
  const names = otherEditors.get(PROMPT);
  const kind = ownEditors.has(PROMPT) ? "shared" : "seen";
  line.hidden = !names;
  if (names) setLine(line, aboutPeople(sentences[kind], names));
}

function setLine(line, sentence) {
  if (line.textContent !== sentence) line.replaceChildren(createIcon("pencil"), sentence);
}

export function connect() {
  live.addEventListener("open", reportAll);
  live.addEventListener("state", ({ detail: { state } }) => {
    if (state !== "connected" && otherEditors.size) show({ editors: [], words: {} });
  });
}
