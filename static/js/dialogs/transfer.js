// The dialogs of export and import. An import uploads a file, lets the user choose, and shows the result.
import { fetchText, formDataWithFile, goToSignIn, postForm, uploadFile } from "../net/http.js";
import { currentWorkspace } from "../sidebar/list_content.js";
import { createElement, openDialog, parseHtml } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { dateFormatter } from "../ui/time.js";
import { showToast } from "../ui/toast.js";

// The number of conversations per request, so that each is answered within seconds and progress is visible.
const BATCH_SIZE = 50;

let dialog = null;
let file = null;
let pendingRequest = null;
let uploadId = null;
let unreadable = [];

const findPart = (selector) => dialog.querySelector(selector);
const allBoxes = () => [...findPart(".conversations").querySelectorAll("input")];
const visibleBoxes = () => allBoxes().filter((box) => !box.closest(".conversation").hidden);

/** Fetches and opens a dialog. Resolves to the dialog, or to null if the request failed or a dialog is already open. */
async function fetchDialog(address) {
  const html = await fetchText(address, { headers: { "HX-Request": "true" } });
  if (html === null) showToast(words.notLoaded);
  if (html === null || document.querySelector("dialog:modal")) return null;
  const opened = parseHtml(html).firstElementChild;
  opened.addEventListener("click", ({ target }) => target === opened && opened.close());
  opened
    .querySelector("[download]")
    ?.closest(".dialog-body")
    .addEventListener("click", ({ target }) => target.closest("[download]") && opened.close());
  openDialog(opened);
  return opened;
}

export const openExport = (session) => fetchDialog(`/sessions/${session}/export`);

/** Opens the dialog that takes a file. */
export async function openImport() {
  const opened = await fetchDialog("/import");
  if (!opened) return;
  dialog = opened;
  dialog.addEventListener("close", () => pendingRequest?.abort());
  dialog.addEventListener("change", handleChange);
  dialog.addEventListener("input", ({ target }) => target.type === "search" && filterConversations(target.value));
  dialog.addEventListener("click", ({ target }) => handleClick(target.closest("[data-choice]")?.dataset.choice));
  findPart("[data-stage=choose]").addEventListener(
    "submit",
    (event) => (event.preventDefault(), importConversations(chosenIndexes())),
  );
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) dialog.addEventListener(name, handleDrag);
}

function handleDrag(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  const zone = findPart(".drop-file");
  zone.classList.toggle("over", event.type === "dragover");
  if (event.type === "drop" && !findPart("[data-stage=pick]").hidden) useFile(event.dataTransfer.files[0]);
}

function handleChange({ target }) {
  if (target.type === "file") useFile(target.files[0]);
  else if (target.dataset.choice === "all") for (const box of visibleBoxes()) box.checked = target.checked;
  if (target.type === "checkbox") updateCount();
}

function handleClick(name) {
  if (name === "stop") pendingRequest?.abort();
  if (name === "again" || (name === "stop" && pendingRequest instanceof XMLHttpRequest)) showPick();
}

function showStage(name) {
  for (const each of dialog.querySelectorAll("[data-stage]")) each.hidden = each.dataset.stage !== name;
}

function showPick(problem = "") {
  const errors = findPart(".errors");
  errors.textContent = problem;
  errors.hidden = !problem;
  findPart("[type=file]").value = "";
  showStage("pick");
  findPart("[type=file]").focus();
}

function useFile(chosenFile) {
  if (!chosenFile) return;
  file = chosenFile;
  if (file.size > Number(dialog.dataset.limit)) showPick(dialog.dataset.tooLarge);
  else uploadImport();
}

/** Uploads the file. */
function uploadImport() {
  findPart(".errors").hidden = true;
  handleProgress(0, 1);
  showStage("send");
  findPart("[data-choice=stop]").focus();
  const body = formDataWithFile(file, file.name, { workspace: currentWorkspace() });
  pendingRequest = uploadFile(dialog.dataset.address, body, {
    progress: handleProgress,
    answered: handleResponse,
    failed: () => showPick(dialog.dataset.failed),
  });
}

/** Shows the progress of the upload, and after it that the server is reading the file, which takes an unknown time. */
function handleProgress(done, total) {
  const isSent = done >= total;
  showProgress(
    isSent ? null : done / total,
    format(isSent ? dialog.dataset.reading : dialog.dataset.sending, { name: file.name }),
  );
}

/** Shows the progress, if it is known, and the present step. */
function showProgress(share, text) {
  const bar = findPart("progress");
  if (share === null) bar.removeAttribute("value");
  else bar.value = share;
  if (findPart(".sending").textContent !== text) findPart(".sending").textContent = text;
}

function handleResponse({ status, response }) {
  if (status === 401) goToSignIn();
  else if (status === 200 && response) showChoices(response);
  else if (status === 201 && response) showDone(response);
  else showPick(response?.message ?? dialog.dataset.failed);
}

/** Imports the chosen conversations in several requests. */
async function importConversations(wanted) {
  const imported = { sessions: [], problems: [...unreadable] };
  const stopSignal = new AbortController();
  pendingRequest = stopSignal;
  findPart(".errors").hidden = true;
  showStage("send");
  findPart("[data-choice=stop]").focus();
  const total = wanted.length;
  for (let at = 0; at < total && !stopSignal.signal.aborted; at += BATCH_SIZE) {
    showImported(at, total);
    const { status, answer } = await importBatch(wanted.slice(at, at + BATCH_SIZE), stopSignal.signal);
    if (status === 401) return goToSignIn();
    imported.sessions.push(...(answer.sessions ?? []));
    imported.problems.push(...(answer.problems ?? answer.message.split("\n")));
    if (status !== 201 && answer.code !== "nothing_imported") break;
  }
  if (!dialog.open) return;
  if (imported.sessions.length) showDone(imported);
  else showPick(stopSignal.signal.aborted ? "" : imported.problems.join("\n"));
}

/** Shows how many conversations are imported. A single request has no progress that could be shown. */
function showImported(count, total) {
  const { importing, importingAll, importingOne } = dialog.dataset;
  const isSingle = total <= BATCH_SIZE;
  const text = !isSingle ? importing : total > 1 ? importingAll : importingOne;
  showProgress(isSingle ? null : count / total, format(text, { count, total }));
}

async function importBatch(indexes, signal) {
  const body = new FormData();
  body.append("workspace", currentWorkspace());
  body.append("upload", uploadId);
  for (const index of indexes) body.append("conversation", index);
  const { status, answer } = await postForm(dialog.dataset.address, body, signal);
  return { status, answer: answer ?? { message: signal.aborted ? dialog.dataset.stopped : dialog.dataset.failed } };
}

function showChoices({ upload: kept, conversations, problems }) {
  uploadId = kept;
  unreadable = problems;
  findPart(".conversations")
    .querySelectorAll(".conversation")
    .forEach((row) => row.remove()); // from an earlier file
  findPart("[type=search]").value = "";
  findPart(".conversations").append(...conversations.map(createChoice));
  findPart("[type=search]").hidden = conversations.length < 8;
  showStage("choose");
  updateCount();
  (conversations.length < 8 ? findPart("[data-choice=all]") : findPart("[type=search]")).focus();
}

function createChoice({ index, title, began, facts, size }) {
  const row = cloneRow("choice");
  row.querySelector("input").value = index;
  row.querySelector("bdi").textContent = title;
  row.querySelector("small").textContent = [formatDay(began), facts, size].filter(Boolean).join(" · ");
  return row;
}

const cloneRow = (name) => findPart(`[data-row=${name}]`).content.firstElementChild.cloneNode(true);

function formatDay(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : dateFormatter({ dateStyle: "medium" }).format(date);
}

function filterConversations(wanted) {
  for (const box of allBoxes()) {
    const row = box.closest(".conversation");
    row.hidden = !row.textContent.toLocaleLowerCase().includes(wanted.trim().toLocaleLowerCase());
  }
  findPart(".no-match").hidden = visibleBoxes().length > 0;
  updateCount();
}

const chosenIndexes = () =>
  allBoxes()
    .filter(({ checked }) => checked)
    .map(({ value }) => value);

function updateCount() {
  const number = chosenIndexes().length;
  const all = findPart("[data-choice=all]");
  const checked = visibleBoxes().filter((box) => box.checked).length;
  all.checked = checked > 0 && checked === visibleBoxes().length;
  all.indeterminate = checked > 0 && !all.checked;
  findPart(".choose-foot p").textContent = format(dialog.dataset.chosen, { count: number, total: allBoxes().length });
  findPart("[data-stage=choose] .primary").disabled = number === 0;
}

function showDone({ sessions, problems }) {
  const [only] = sessions;
  if (sessions.length === 1 && !only.notes.length && !problems.length) return location.assign(only.address);
  findPart(".brought").replaceChildren(...sessions.map(createResult));
  findPart(".problems").hidden = !problems.length;
  findPart(".problems .notes").replaceChildren(...problems.map(createLine));
  const link = findPart("[data-stage=done] .primary");
  link.hidden = sessions.length !== 1;
  link.href = only.address;
  showStage("done");
  findPart(".done").focus();
}

function createResult({ title, address, facts, notes }) {
  const row = cloneRow("brought");
  const link = row.querySelector("a");
  link.href = address;
  link.querySelector("bdi").textContent = title;
  row.querySelector("small").textContent = facts;
  row.querySelector(".notes").append(...notes.map(createLine));
  return row;
}

const createLine = (text) => createElement("li", { textContent: text, dir: "auto" });
