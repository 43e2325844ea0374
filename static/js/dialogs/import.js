// The dialogs of export and import. An import uploads a file, offers its content for choice, and shows the result.
import { formWith, postForm, sendFile, signIn, textAt } from "../net/http.js";
import { shownWorkspace } from "../sidebar/organise.js";
import { answerOf, make, parse } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { formatter } from "../ui/time.js";
import { toast } from "../ui/toast.js";

// The number of conversations per request, so that each is answered within seconds and progress is visible.
const AT_ONCE = 50;

let dialog = null;
let file = null;
let request = null;
let upload = null;
let unreadable = [];

const find = (selector) => dialog.querySelector(selector);
const boxes = () => [...find(".conversations").querySelectorAll("input")];
const shown = () => boxes().filter((box) => !box.closest(".conversation").hidden);

/** Fetches and opens a dialog; resolves to it, or to null if the request failed or a dialog is open already. */
async function openDialog(address) {
  const html = await textAt(address, { headers: { "HX-Request": "true" } });
  if (html === null) toast(words.notLoaded);
  if (html === null || document.querySelector("dialog:modal")) return null;
  const dialog = parse(html).firstElementChild;
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog
    .querySelector("[download]")
    ?.closest(".dialog-body")
    .addEventListener("click", ({ target }) => target.closest("[download]") && dialog.close());
  answerOf(dialog);
  return dialog;
}

export const openExport = (session) => openDialog(`/sessions/${session}/export`);

/** Opens the dialog that takes a file. */
export async function openImport() {
  const opened = await openDialog("/import");
  if (!opened) return;
  dialog = opened;
  dialog.addEventListener("close", () => request?.abort());
  dialog.addEventListener("change", changed);
  dialog.addEventListener("input", ({ target }) => target.type === "search" && filter(target.value));
  dialog.addEventListener("click", ({ target }) => pressed(target.closest("[data-choice]")?.dataset.choice));
  find("[data-stage=choose]").addEventListener("submit", (event) => (event.preventDefault(), bring(chosen())));
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) dialog.addEventListener(name, dragged);
}

function dragged(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  const zone = find(".drop-file");
  zone.classList.toggle("over", event.type === "dragover");
  if (event.type === "drop" && !find("[data-stage=pick]").hidden) take(event.dataTransfer.files[0]);
}

function changed({ target }) {
  if (target.type === "file") take(target.files[0]);
  else if (target.dataset.choice === "all") for (const box of shown()) box.checked = target.checked;
  if (target.type === "checkbox") count();
}

function pressed(name) {
  if (name === "stop") request?.abort();
  if (name === "again" || (name === "stop" && request instanceof XMLHttpRequest)) pick();
}

function stage(name) {
  for (const each of dialog.querySelectorAll("[data-stage]")) each.hidden = each.dataset.stage !== name;
}

function pick(problem = "") {
  const errors = find(".errors");
  errors.textContent = problem;
  errors.hidden = !problem;
  find("[type=file]").value = "";
  stage("pick");
  find("[type=file]").focus();
}

function take(given) {
  if (!given) return;
  file = given;
  if (file.size > Number(dialog.dataset.limit)) pick(dialog.dataset.tooLarge);
  else send();
}

/** Uploads the file. */
function send() {
  find(".errors").hidden = true;
  progress(0, 1);
  stage("send");
  find("[data-choice=stop]").focus();
  const body = formWith(file, file.name, { workspace: shownWorkspace() });
  request = sendFile(dialog.dataset.address, body, { progress, answered, failed: () => pick(dialog.dataset.failed) });
}

/** Shows that the server reads the file, which takes an unknown time. */
function progress(done, total) {
  const isSent = done >= total;
  show(
    isSent ? null : done / total,
    fill(isSent ? dialog.dataset.reading : dialog.dataset.sending, { name: file.name }),
  );
}

/** Shows the progress, if it is known, and the present step. */
function show(share, said) {
  const bar = find("progress");
  if (share === null) bar.removeAttribute("value");
  else bar.value = share;
  if (find(".sending").textContent !== said) find(".sending").textContent = said;
}

function answered({ status, response }) {
  if (status === 401) signIn();
  else if (status === 200 && response) choose(response);
  else if (status === 201 && response) done(response);
  else pick(response?.message ?? dialog.dataset.failed);
}

/** Imports the chosen conversations in several requests. */
async function bring(wanted) {
  const made = { sessions: [], problems: [...unreadable] };
  const stopping = new AbortController();
  request = stopping;
  find(".errors").hidden = true;
  stage("send");
  find("[data-choice=stop]").focus();
  for (let at = 0; at < wanted.length && !stopping.signal.aborted; at += AT_ONCE) {
    show(at / wanted.length, fill(dialog.dataset.importing, { count: at, total: wanted.length }));
    const { status, answer } = await bringSome(wanted.slice(at, at + AT_ONCE), stopping.signal);
    if (status === 401) return signIn();
    made.sessions.push(...(answer.sessions ?? []));
    made.problems.push(...(answer.problems ?? answer.message.split("\n")));
    if (status !== 201 && answer.code !== "nothing_imported") break;
  }
  if (!dialog.open) return;
  if (made.sessions.length) done(made);
  else pick(stopping.signal.aborted ? "" : made.problems.join("\n"));
}

async function bringSome(indexes, signal) {
  const body = new FormData();
  body.append("workspace", shownWorkspace());
  body.append("upload", upload);
  for (const index of indexes) body.append("conversation", index);
  const { status, answer } = await postForm(dialog.dataset.address, body, signal);
  return { status, answer: answer ?? { message: signal.aborted ? dialog.dataset.stopped : dialog.dataset.failed } };
}

function choose({ upload: kept, conversations, problems }) {
  upload = kept;
  unreadable = problems;
  find(".conversations")
    .querySelectorAll(".conversation")
    .forEach((row) => row.remove()); // from an earlier file
  find("[type=search]").value = "";
  find(".conversations").append(...conversations.map(choice));
  find("[type=search]").hidden = conversations.length < 8;
  stage("choose");
  count();
  (conversations.length < 8 ? find("[data-choice=all]") : find("[type=search]")).focus();
}

function choice({ index, title, began, facts, size }) {
  const row = copy("choice");
  row.querySelector("input").value = index;
  row.querySelector("bdi").textContent = title;
  row.querySelector("small").textContent = [day(began), facts, size].filter(Boolean).join(" · ");
  return row;
}

const copy = (name) => find(`[data-row=${name}]`).content.firstElementChild.cloneNode(true);

function day(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : formatter({ dateStyle: "medium" }).format(date);
}

function filter(wanted) {
  for (const box of boxes()) {
    const row = box.closest(".conversation");
    row.hidden = !row.textContent.toLocaleLowerCase().includes(wanted.trim().toLocaleLowerCase());
  }
  find(".no-match").hidden = shown().length > 0;
  count();
}

const chosen = () =>
  boxes()
    .filter(({ checked }) => checked)
    .map(({ value }) => value);

function count() {
  const number = chosen().length;
  const all = find("[data-choice=all]");
  const checked = shown().filter((box) => box.checked).length;
  all.checked = checked > 0 && checked === shown().length;
  all.indeterminate = checked > 0 && !all.checked;
  find(".choose-foot p").textContent = fill(dialog.dataset.chosen, { count: number, total: boxes().length });
  find("[data-stage=choose] .primary").disabled = number === 0;
}

function done({ sessions, problems }) {
  const [only] = sessions;
  if (sessions.length === 1 && !only.notes.length && !problems.length) return location.assign(only.address);
  find(".brought").replaceChildren(...sessions.map(brought));
  find(".problems").hidden = !problems.length;
  find(".problems .notes").replaceChildren(...problems.map(line));
  const link = find("[data-stage=done] .primary");
  link.hidden = sessions.length !== 1;
  link.href = only.address;
  stage("done");
  find(".done").focus();
}

function brought({ title, address, facts, notes }) {
  const row = copy("brought");
  const link = row.querySelector("a");
  link.href = address;
  link.querySelector("bdi").textContent = title;
  row.querySelector("small").textContent = facts;
  row.querySelector(".notes").append(...notes.map(line));
  return row;
}

const line = (text) => make("li", { textContent: text, dir: "auto" });
