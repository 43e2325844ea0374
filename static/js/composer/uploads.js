// Attaches files: chosen, dropped or pasted ones, and very long pasted texts. They are uploaded to the page's session.
// On the home page, the first file creates the session.
import { fetchJson, fetchText, PAGE_REQUESTED_AT, post, uploadFile } from "../net/http.js";
import { parseJson, readStored, writeStored as keepStored } from "../net/storage.js";
import { addCommand, onAction } from "../ui/commands.js";
import { cloneTemplate, createElement } from "../ui/dom.js";
import { field, insertText, isWithinLimit } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { announce, clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";

// The chips of files in the composer: name, progress and errors.

const UNITS = ["", "\u00a0KB", "\u00a0MB"];

/** Creates a chip and stores it as the upload's element. */
function drawChip(upload) {
  upload.element = cloneTemplate("chip");
  updateChip(upload);
  return upload.element;
}

function updateChip(upload) {
  const { element, state, name } = upload;
  element.dataset.state = state;
  element.dataset.kind = upload.meta?.kind ?? upload.file?.type.split("/")[0] ?? "";
  element.style.setProperty("--done", upload.done ?? 0);
  const [, base, ending = ""] = /^(.+?)(\.[^.]{1,8})?$/s.exec(name) ?? ["", name]; // long names keep their ending
  const shown = element.querySelector(".chip-name");
  if (shown.textContent !== base + ending) shown.replaceChildren(createElement("span", { textContent: base }), ending);
  element.querySelector(".chip-detail").textContent = chipDetail(upload);
  element.querySelector("[data-action=upload-retry]").hidden = state !== "failed" || !upload.canRetry;
  element.querySelector("[data-action=upload-as-text]").hidden = !(upload.text
    ? isWithinLimit(upload.text)
    : upload.meta?.pasted);
  element.querySelector("[data-action=upload-remove] .sr-only").textContent = format(words.removeFile, { name });
  showPicture(element.querySelector("img"), upload.meta);
}

function chipDetail({ state, problem, done, size }) {
  if (state === "failed") return problem;
  return state === "sending" ? format(words.uploadedPart, { percent: Math.round(done * 100) }) : formatSize(size);
}

function showPicture(image, meta) {
  if (meta?.kind !== "image" || !(meta.thumb || meta.url)) return;
  image.src = meta.thumb || meta.url;
  image.hidden = false;
}

/** Formats a file size like the server: 512 bytes, 1.2 MB. */
function formatSize(bytes) {
  const unit = bytes < 1024 ? 0 : bytes < 1024 ** 2 ? 1 : 2;
  const digits = unit ? 1 : 0;
  const form = unit ? {} : { style: "unit", unit: "byte", unitDisplay: "long" };
  const number = new Intl.NumberFormat(document.documentElement.lang, {
    ...form,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${number.format(bytes / 1024 ** unit)}${UNITS[unit]}`;
}

// The files of the message that the user is writing. They are uploaded immediately, and sent with the message.

const page = document.getElementById("main");
const FILES_NAME = `parley:files:${page.dataset.viewerId}:${page.dataset.session ?? page.dataset.place}`;
const list = document.getElementById("uploads");
const removedIds = new Set(); // ids of files that were sent or removed here
const waitingUploads = []; // uploads on the home page that wait until the first file has created the session
let createdSession = ""; // the id of the session that was created by the first file
let isCreatingSession = false;
// {name, size, file, text, key, state: "sending" | "ready" | "failed", done, problem, canRetry, meta, request, element}
let uploads = [];

const isUploading = () => uploads.some(({ state }) => state === "sending");
const hasFailed = () => uploads.some(({ state }) => state === "failed");

let isAwaited = false; // whether the message is sent when all uploads are done

/** Returns whether all files are uploaded. If not, shows which failed, or sends the message when they are uploaded. */
export function ensureUploaded() {
  if (hasFailed()) showNotice(words.uploadsFailed, { action: removeFailedAction(), about: "uploads" });
  else if (isUploading()) setAwaited(true);
  else return true;
  return false;
}

/** Returns the action that removes all failed files, or null for a single one, which has a button of its own. */
function removeFailedAction() {
  const failed = uploads.filter(({ state }) => state === "failed");
  const run = () => {
    setUploads(uploads.filter(({ state }) => state !== "failed"));
    field.focus();
  };
  return failed.length > 1 ? { label: format(words.uploadsRemove, { count: failed.length }), run } : null;
}

/** Sets whether the message is sent when all files are uploaded. Typing cancels this. */
function setAwaited(isWaiting) {
  isAwaited = isWaiting;
  field.form.querySelector(".send span").textContent = isWaiting ? words.uploading : words.send;
}

/** Sends the message that waits for the uploads when they are done. Until then, the browser asks before leaving. */
function handleUploadChange() {
  // Set only while needed, because browsers may not keep pages for the Back button that have a handler.
  const wouldLose = uploads.some(({ state, canRetry }) => state === "sending" || (state === "failed" && canRetry));
  onbeforeunload = wouldLose ? (event) => event.preventDefault() : null;
  const wasAwaited = isAwaited;
  if (!hasFailed()) clearNoticeAfterSuccess("uploads");
  if (isUploading()) return;
  setAwaited(false);
  if (wasAwaited && !hasFailed()) field.form.requestSubmit();
}

/** Returns the id of the session that has the files, or "" on the home page before the first file is uploaded. */
export const sessionOfFiles = () =>
  page.dataset.session ?? uploads.find(({ meta }) => meta)?.meta.session ?? createdSession;

/** Forgets the session that the first file created, because it may have been deleted. */
export const forgetSession = () => (createdSession = "");

/** Makes the next request of the home page's form create another session. */
export function startOver() {
  forgetSession();
  field.form.elements.key.value += 1;
}

/** Removes the uploaded files from the composer and returns them, to be sent. */
export function takeUploaded() {
  const ready = uploads.filter(({ state }) => state === "ready").map(({ meta }) => meta);
  for (const { id } of ready) removedIds.add(id);
  setUploads(uploads.filter(({ state }) => state !== "ready"));
  return ready;
}

/** Puts uploaded files that were not sent back into the composer. */
export function restoreFiles(metas) {
  for (const { id } of metas) removedIds.delete(id);
  setUploads([...uploads, ...metas.map(createUploaded)]);
}

/** Uploads files. `text` is the pasted text from which a file was created. */
function addFiles(files, text = "") {
  const fresh = [...files].map((file) => ({ name: file.name, size: file.size, file, text, key: Math.random() }));
  setUploads([...uploads, ...fresh]);
  for (const upload of fresh) startUpload(upload);
}

/** `unsent` are the files of messages that are not confirmed yet. */
export function connectUploads(unsent = []) {
  for (const { id } of unsent) removedIds.add(id);
  setUploads(storedFiles().map(createUploaded));
  if (page.dataset.session) syncFiles(parseJson(field.form.dataset.files) ?? [], PAGE_REQUESTED_AT);
  addEventListener("storage", ({ key }) => key === FILES_NAME && syncFiles(storedFiles()));
  document.addEventListener("visibilitychange", () => document.hidden || refreshFiles());
  const chooser = document.getElementById("files");
  onAction("attach", () => chooser.click());
  addCommand({
    id: "attach",
    label: words.attachFiles,
    icon: "paperclip",
    slash: "attach",
    run: () => chooser.click(),
  });
  chooser.addEventListener("change", () => {
    addFiles(chooser.files);
    chooser.value = "";
    field.focus();
  });
  field.addEventListener("input", () => isAwaited && setAwaited(false));
  onAction("upload-retry", (button) => startUpload(findUpload(button)));
  onAction("upload-remove", (button) => removeUpload(findUpload(button)));
  onAction("upload-as-text", (button) => insertAsText(findUpload(button)));
}

/** Repeats uploads that failed with the connection. */
export function retryFailed() {
  for (const upload of uploads) if (upload.state === "failed" && upload.canRetry) startUpload(upload);
}

function startUpload(upload) {
  const session = sessionOfFiles();
  updateUpload(upload, { state: "sending", done: 0, problem: "" });
  if (session) uploadTo(session, upload, new FormData());
  else if (isCreatingSession) waitingUploads.push(upload);
  else createSessionWith(upload);
}

/** Creates the session with the home page's form and a file. If this fails, the next file creates it. */
function createSessionWith(upload) {
  isCreatingSession = true;
  const body = new FormData(field.form);
  body.delete("text"); // the user has not finished it
  uploadTo("new", upload, body).onloadend = () => {
    isCreatingSession = false;
    for (const other of waitingUploads.splice(0)) if (uploads.includes(other)) startUpload(other);
  };
}

function uploadTo(session, upload, body) {
  body.append("file", upload.file, upload.name);
  body.append("upload", upload.key); // if the response is lost, the server recognizes the file by its key
  const request = uploadFile(`/sessions/${session}/attachments`, body, {
    progress: (done, total) => updateUpload(upload, { done: total ? done / total : 0 }),
    answered: (answer) => handleResponse(upload, answer),
    failed: () => failUpload(upload),
  });
  updateUpload(upload, { request });
  return request;
}

/** Handles the response. A refused file has no button to try again, because it would be refused again. */
function handleResponse(upload, { status, response }) {
  if (status === 404) forgetSession();
  if (status !== 201) return failUpload(upload, response?.message, status >= 500 || status === 429);
  setUploads(uploads.filter(({ meta }) => meta?.id !== response.id)); // shown by `refreshFiles` after a lost response
  createdSession = response.session ?? createdSession;
  const session = createdSession || undefined;
  updateUpload(upload, {
    state: "ready",
    meta: { ...response, at: Date.now(), session, pasted: upload.text !== "" && isWithinLimit(upload.text) },
    name: response.name,
    size: response.size,
  });
  announce(format(words.fileAttached, { name: upload.name }));
  storeFiles();
}

function failUpload(upload, problem = words.uploadFailed, canRetry = true) {
  updateUpload(upload, { state: "failed", problem, canRetry });
  upload.element?.scrollIntoView({ block: "nearest", inline: "nearest" }); // on phones the chips scroll in one line
  announce(problem);
}

function updateUpload(upload, values) {
  Object.assign(upload, values);
  if (uploads.includes(upload)) updateChip(upload);
  if (values.state) handleUploadChange();
}

function removeUpload(upload) {
  removedIds.add(upload.meta?.id);
  const next = upload.element.nextElementSibling ?? upload.element.previousElementSibling;
  setUploads(uploads.filter((other) => other !== upload));
  upload.request?.abort();
  const isUnused = !page.dataset.session && !uploads.length; // the session was created for this file alone
  const values = isUnused ? { begun: "yes" } : {};
  if (isUnused) startOver();
  // The server deletes unsent files later.
  if (upload.meta) post(`/attachments/${upload.meta.id}/remove`, values, "").catch(() => {});
  (next?.querySelector("[data-action=upload-remove]") ?? field).focus();
}

/** Puts the pasted text of a file into the field. After a reload the text is fetched from the server. */
async function insertAsText(upload) {
  const text = upload.text || (await fetchText(upload.meta.url));
  if (text === null) return showNotice(words.notLoaded);
  removeUpload(upload);
  insertText(text);
}

function setUploads(next) {
  for (const upload of uploads) if (!next.includes(upload)) upload.element.remove();
  for (const upload of next) if (!upload.element) list.append(drawChip(upload));
  uploads = next;
  storeFiles();
  handleUploadChange();
}

const createUploaded = (meta) => ({ name: meta.name, size: meta.size, state: "ready", meta });
const findUpload = (button) => uploads.find(({ element }) => element.contains(button));

/** Shows the files of another tab or the server. Files that were uploaded here at or after `since` stay. */
function syncFiles(others, since = Infinity) {
  const has = (meta) => uploads.some((upload) => upload.meta?.id === meta.id);
  const stay = uploads.filter(({ meta }) => !meta || meta.at >= since || others.some(({ id }) => id === meta.id));
  setUploads([...stay, ...others.filter((meta) => !has(meta) && !removedIds.has(meta.id)).map(createUploaded)]);
}

/** Shows the files that the server has, because the user's other devices can upload, send and remove files, too. */
export async function refreshFiles() {
  if (!page.dataset.session || isUploading()) return;
  const requestedAt = Date.now();
  const answer = await fetchJson(`/sessions/${page.dataset.session}/attachments/unsent`);
  if (answer && !isUploading()) syncFiles(answer.files, requestedAt);
}

/** Returns whether uploaded files are attached, which the user could also send on another device. */
export const hasUploadedFiles = () => uploads.some(({ meta }) => meta);

function storeFiles() {
  const metas = uploads.filter(({ meta }) => meta).map(({ meta }) => meta);
  if (JSON.stringify(metas) === JSON.stringify(storedFiles())) return;
  keepStored(FILES_NAME, JSON.stringify(metas));
}

function storedFiles() {
  const metas = parseJson(readStored(FILES_NAME));
  return Array.isArray(metas) ? metas : [];
}

const LONG_PASTE = 10_000; // characters; a longer pasted text becomes a file

export function connectDropping() {
  field.addEventListener("paste", handlePaste);
  document.addEventListener("dragenter", showDropTarget);
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", handleDrop);
}

function handlePaste(event) {
  const { files, types } = event.clipboardData;
  const text = event.clipboardData.getData("text/plain");
  // With a formatted text, the files are only images of copied cells or paragraphs. A file's name is plain text.
  const isFormatted = text !== "" && ["text/html", "text/rtf"].some((type) => types.includes(type));
  if (files.length && !isFormatted) addFiles(files);
  else if (text.length > LONG_PASTE) addFiles([new File([text], words.pastedFile, { type: "text/plain" })], text);
  else return;
  event.preventDefault();
}

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

/** Shows where to drop files, if files are dragged and not an element of the page. */
function showDropTarget(event) {
  if (!hasFiles(event) || document.querySelector(".drop-here, dialog:modal")) return;
  const cover = cloneTemplate("drop-here");
  cover.addEventListener("dragleave", () => cover.remove());
  page.append(cover);
}

function handleDrop(event) {
  if (!hasFiles(event)) return;
  event.preventDefault();
  if (!page.contains(event.target)) return;
  document.querySelector(".drop-here")?.remove();
  addFiles(event.dataTransfer.files);
  field.focus();
}
