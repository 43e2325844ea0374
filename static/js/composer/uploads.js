// Files dropped anywhere on the page, or pasted into its field, are attached; so is a very long pasted text. They go to
// the page's session; at home, where there is none yet, to the one that begins with the first of them.
import { post, sendFile, textAt } from "../net/http.js";
import * as store from "../net/storage.js";
import { offer, on } from "../ui/commands.js";
import { copyOf } from "../ui/dom.js";
import { field, insert, isWithin } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { notice, say, settle } from "../ui/notice.js";

// The chips of files in the composer: what each is, how far it is, what went wrong.

const UNITS = ["", "\u00a0KB", "\u00a0MB"];

/** Draws a new chip; the upload knows it as its element. */
function drawChip(upload) {
  upload.element = copyOf("chip");
  updateChip(upload);
  return upload.element;
}

function updateChip(upload) {
  const { element, state, name } = upload;
  element.dataset.state = state;
  element.dataset.kind = upload.meta?.kind ?? upload.file?.type.split("/")[0] ?? "";
  element.style.setProperty("--done", upload.done ?? 0);
  element.querySelector(".chip-name").textContent = name;
  element.querySelector(".chip-detail").textContent = detail(upload);
  element.querySelector("[data-action=upload-retry]").hidden = state !== "failed" || !upload.canRetry;
  element.querySelector("[data-action=upload-as-text]").hidden = !(upload.text
    ? isWithin(upload.text)
    : upload.meta?.pasted);
  element.querySelector("[data-action=upload-remove] .sr-only").textContent = fill(words.removeFile, { name });
  showPicture(element.querySelector("img"), upload.meta);
}

function detail({ state, problem, done, size }) {
  if (state === "failed") return problem;
  return state === "sending" ? fill(words.uploadedPart, { percent: Math.round(done * 100) }) : sized(size);
}

function showPicture(image, meta) {
  if (meta?.kind !== "image" || !(meta.thumb || meta.url)) return;
  image.src = meta.thumb || meta.url;
  image.hidden = false;
}

/** A file size in the form of the server's: 512 bytes, 1.2 MB. */
function sized(bytes) {
  const step = bytes < 1024 ? 0 : bytes < 1024 ** 2 ? 1 : 2;
  const places = step ? 1 : 0;
  const form = step ? {} : { style: "unit", unit: "byte", unitDisplay: "long" };
  const number = new Intl.NumberFormat(document.documentElement.lang, {
    ...form,
    minimumFractionDigits: places,
    maximumFractionDigits: places,
  });
  return `${number.format(bytes / 1024 ** step)}${UNITS[step]}`;
}

// Files on their way into the message being written: uploaded at once, told by their chips, sent with the text.

const page = document.getElementById("main");
const NAME = `parley:files:${page.dataset.viewerId}:${page.dataset.session ?? page.dataset.place}`;
const list = document.getElementById("uploads");
const waiting = []; // for the first file at home, which begins the session
let begun = ""; // that session
let isBeginning = false;
let uploads = []; // {name, size, file, text, state: "sending" | "ready" | "failed", done, problem, canRetry, meta, request, element}

const isUploading = () => uploads.some(({ state }) => state === "sending");
const hasFailed = () => uploads.some(({ state }) => state === "failed");

let isAwaited = false; // the message, which goes out when they are there

/** Whether the message can go out with its files. One that failed is told of; those on their way are waited for. */
export function areThere() {
  if (hasFailed()) notice(words.uploadsFailed, { about: "uploads" });
  else if (isUploading()) waitForFiles(true);
  else return true;
  return false;
}

/** Sends by itself when the files are there, unless somebody goes on writing. */
function waitForFiles(waits) {
  isAwaited = waits;
  field.form.querySelector(".send span").textContent = waits ? words.uploading : words.send;
}

function settled() {
  const wasAwaited = isAwaited;
  if (!hasFailed()) settle("uploads");
  if (isUploading()) return;
  waitForFiles(false);
  if (wasAwaited && !hasFailed()) field.form.requestSubmit();
}

/** The session that has the files; "" at home before the first one is there. */
export const sessionOfFiles = () => page.dataset.session ?? uploads.find(({ meta }) => meta)?.meta.session ?? begun;

/** The session was of no use: it may have been deleted. */
export const forgetSession = () => (begun = "");

/** Takes the files that the server has out of the composer, to be sent. */
export function take() {
  const ready = uploads.filter(({ state }) => state === "ready").map(({ meta }) => meta);
  set(uploads.filter(({ state }) => state !== "ready"));
  return ready;
}

/** Puts files back that the server has and that were not sent after all. */
export function giveFilesBack(metas) {
  set([...uploads, ...metas.map(known)]);
}

/** Begins to upload files; `text` is what a file was made of, where it was pasted. */
export function add(files, text = "") {
  const fresh = [...files].map((file) => ({ name: file.name, size: file.size, file, text }));
  set([...uploads, ...fresh]);
  for (const upload of fresh) send(upload);
}

export function connectUploads() {
  giveFilesBack(stored());
  addEventListener("storage", ({ key }) => key === NAME && follow());
  const chooser = document.getElementById("files");
  on("attach", () => chooser.click());
  offer({ id: "attach", label: words.attachFiles, icon: "paperclip", slash: "attach", run: () => chooser.click() });
  chooser.addEventListener("change", () => {
    add(chooser.files);
    chooser.value = "";
    field.focus();
  });
  field.addEventListener("input", () => isAwaited && waitForFiles(false));
  on("upload-retry", (button) => send(uploadOf(button)));
  on("upload-remove", (button) => leave(uploadOf(button)));
  on("upload-as-text", (button) => asText(uploadOf(button)));
}

/** What broke off with the connection goes on with it. */
export function tryAgain() {
  for (const upload of uploads) if (upload.state === "failed" && upload.canRetry) send(upload);
}

function send(upload) {
  const session = sessionOfFiles();
  change(upload, { state: "sending", done: 0, problem: "" });
  if (session) sendTo(session, upload, new FormData());
  else if (isBeginning) waiting.push(upload);
  else beginWith(upload);
}

/** The session is made as home's form says. The other files go to it; or the next one begins it, when it was not made. */
function beginWith(upload) {
  isBeginning = true;
  const body = new FormData(field.form);
  body.delete("text"); // it is still being written
  sendTo("new", upload, body).onloadend = () => {
    isBeginning = false;
    for (const other of waiting.splice(0)) if (uploads.includes(other)) send(other);
  };
}

function sendTo(session, upload, body) {
  body.append("file", upload.file, upload.name);
  const request = sendFile(`/sessions/${session}/attachments`, body, {
    progress: (done, total) => change(upload, { done: total ? done / total : 0 }),
    answered: (answer) => answered(upload, answer),
    failed: () => failed(upload),
  });
  change(upload, { request });
  return request;
}

/** A file that the server does not take would not be taken the next time either. */
function answered(upload, { status, response }) {
  if (status === 404) forgetSession();
  if (status !== 201) return failed(upload, response?.message, status >= 500 || status === 429);
  begun = response.session ?? begun;
  const session = begun || undefined;
  change(upload, {
    state: "ready",
    meta: { ...response, session, pasted: upload.text !== "" && isWithin(upload.text) },
    name: response.name,
    size: response.size,
  });
  say(fill(words.fileAttached, { name: upload.name }));
  keep();
}

function failed(upload, problem = words.uploadFailed, canRetry = true) {
  change(upload, { state: "failed", problem, canRetry });
  upload.element?.scrollIntoView({ block: "nearest", inline: "nearest" }); // on phones the chips are one line
  say(problem);
}

function change(upload, values) {
  Object.assign(upload, values);
  if (uploads.includes(upload)) updateChip(upload);
  if (values.state) settled();
}

function leave(upload) {
  const next = upload.element.nextElementSibling ?? upload.element.previousElementSibling;
  set(uploads.filter((other) => other !== upload));
  upload.request?.abort();
  if (upload.meta) post(`/attachments/${upload.meta.id}/remove`, {}, "").catch(() => {}); // what nobody sends goes by itself
  (next?.querySelector("[data-action=upload-remove]") ?? field).focus();
}

/** After a reload the server alone has the text that was pasted. */
async function asText(upload) {
  const text = upload.text || (await textAt(upload.meta.url));
  if (text === null) return notice(words.notLoaded);
  leave(upload);
  insert(text);
}

function set(next) {
  for (const upload of uploads) if (!next.includes(upload)) upload.element.remove();
  for (const upload of next) if (!upload.element) list.append(drawChip(upload));
  uploads = next;
  keep();
  settled();
}

const known = (meta) => ({ name: meta.name, size: meta.size, state: "ready", meta });
const uploadOf = (button) => uploads.find(({ element }) => element.contains(button));

/** Another tab sent, added or removed files. */
function follow() {
  const theirs = stored();
  const has = (meta) => uploads.some((upload) => upload.meta?.id === meta.id);
  const stay = uploads.filter(({ meta }) => !meta || theirs.some(({ id }) => id === meta.id));
  set([...stay, ...theirs.filter((meta) => !has(meta)).map(known)]);
}

function keep() {
  const metas = uploads.filter(({ meta }) => meta).map(({ meta }) => meta);
  if (JSON.stringify(metas) === JSON.stringify(stored())) return;
  store.keep(NAME, JSON.stringify(metas));
}

function stored() {
  const metas = store.parsed(store.kept(NAME));
  return Array.isArray(metas) ? metas : [];
}

const LONG = 10_000; // characters that are better read as a file

export function connectDropping() {
  field.addEventListener("paste", pasted);
  document.addEventListener("dragenter", entered);
  document.addEventListener("dragover", (event) => isFiles(event) && event.preventDefault());
  document.addEventListener("drop", dropped);
}

function pasted(event) {
  const { files } = event.clipboardData;
  const text = event.clipboardData.getData("text/plain");
  if (files.length && !text)
    add(files); // spreadsheets and documents come with a picture of themselves
  else if (text.length > LONG) add([new File([text], words.pastedFile, { type: "text/plain" })], text);
  else return;
  event.preventDefault();
}

const isFiles = (event) => event.dataTransfer?.types.includes("Files");

/** Something of this page that is dragged about is no file to attach. */
function entered(event) {
  if (!isFiles(event) || document.querySelector(".drop-here, dialog:modal")) return;
  const cover = copyOf("drop-here");
  cover.addEventListener("dragleave", () => cover.remove());
  page.append(cover);
}

function dropped(event) {
  if (!isFiles(event)) return;
  event.preventDefault();
  if (!page.contains(event.target)) return;
  document.querySelector(".drop-here")?.remove();
  add(event.dataTransfer.files);
  field.focus();
}
