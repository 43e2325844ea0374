// Who is editing which message, as they see it here and others see it there (LIVE-08).
import { icon, make } from "../ui/dom.js";
import { aboutPeople } from "../ui/i18n.js";
import { say } from "../ui/notice.js";
import { keepPlace } from "./scroll.js";
import { live, page } from "./session.js";

const PROMPT = "system_prompt";
const RENEW = 25_000;
const isMe = (id) => String(id) === page.dataset.viewerId;

// The user's own editors: others see them while they are open.

const mine = new Map(); // forms, by what they edit
let timer = 0;

/** Tells others that the user is editing a message, or the system prompt, until `end`. */
export function begin(id, form) {
  if (mine.get(id) === form) return;
  mine.set(id, form);
  report(id, true);
  timer ||= setInterval(renew, RENEW);
  watch();
  draw();
}

export function end(id) {
  if (!mine.delete(id)) return;
  report(id, false);
  draw();
  if (mine.size) return;
  clearInterval(timer);
  timer = 0;
}

/** A report that is lost or refused is made good by the next one, or by the end of its time on the server. */
function report(id, open) {
  live.request({ type: "editing", id, open }).catch(() => {});
}

function renew() {
  endHidden();
  for (const id of mine.keys()) report(id, true);
}

/** Ends editors that have left the page with their message, or that are in a closed panel. */
function endHidden() {
  for (const [id, form] of mine) if (!form.checkVisibility()) end(id);
}

/** Follows the lists while they have editors: messages leave, and a new state may replace what was added to one. */
function watch() {
  watcher.disconnect();
  if (!mine.size && !others.size) return;
  for (const list of ["messages", "queue"]) watcher.observe(document.getElementById(list), { childList: true });
}

const watcher = new MutationObserver(() => {
  endHidden();
  keepPlace(draw);
});

// The editors of others. A frame names all that are open.

let others = new Map(); // names, by what they edit
let sentences = {};

/** Shows a frame about editors. */
export function show({ editors, words }) {
  others = new Map();
  for (const { id, user_id: user, name } of editors) if (!isMe(user)) others.set(id, [...(others.get(id) ?? []), name]);
  sentences = words;
  watch();
  keepPlace(draw);
}

/** Shows who is editing what is on the page now. */
export function draw() {
  for (const line of document.querySelectorAll(".editing-now[data-own]"))
    if (!others.has(line.parentElement.id)) line.remove();
  for (const note of document.querySelectorAll(".editing-too")) if (!others.has(note.dataset.of)) untell(note);
  drawPrompt();
  for (const [id, names] of others) {
    const message = document.getElementById(id);
    if (!message || id === PROMPT) continue;
    const form = message.querySelector(":scope > form.edit");
    if (form) tell(form, id, names);
    mark(message, aboutPeople(sentences.seen, names));
    watcher.observe(message, { childList: true });
  }
}

/** Shows a line at the end of a message. It is no live region: readers find it there, and are not interrupted. */
function mark(message, sentence) {
  let line = message.querySelector(":scope > .editing-now");
  if (!line) message.append((line = make("p", { className: "editing-now", data: { own: "" } })));
  write(line, sentence);
}

/** Tells a user in the form in which they edit the same message; announces what comes while they are in it. */
function tell(form, id, names) {
  const field = form.querySelector("textarea");
  let note = form.querySelector(".editing-too");
  if (!note) {
    note = make("p", { className: "editing-too", id: `${id}-too`, data: { of: id } });
    form.querySelector("label").after(note);
    field.setAttribute("aria-describedby", note.id);
    if (form.contains(document.activeElement)) say(aboutPeople(sentences.shared, names));
  }
  write(note, aboutPeople(sentences.shared, names));
}

function untell(note) {
  note.closest("form").querySelector("textarea").removeAttribute("aria-describedby");
  note.remove();
}

function drawPrompt() {
  const line = document.getElementById("prompt-editing");
  if (!line) return;
  const names = others.get(PROMPT);
  const kind = mine.has(PROMPT) ? "shared" : "seen";
  line.hidden = !names;
  if (names) write(line, aboutPeople(sentences[kind], names));
}

function write(line, sentence) {
  if (line.textContent !== sentence) line.replaceChildren(icon("pencil"), sentence);
}

export function connect() {
  live.addEventListener("open", renew);
  live.addEventListener("state", ({ detail: { state } }) => {
    if (state !== "connected" && others.size) show({ editors: [], words: {} });
  });
}
