// Attaches files that are dropped on the page or pasted into its field, and very long pasted texts. They are uploaded to
// the page's session; at home, to a session that is created with the first file.
import { post, sendFile, textAt, valueAt } from "../net/http.js";
import { keep as keepStored, kept, parsed } from "../net/storage.js";
import { offer, on } from "../ui/commands.js";
import { copyOf, make } from "../ui/dom.js";
import { field, insert, isWithin } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { notice, say, settle } from "../ui/notice.js";

// The chips of files in the composer: name, progress and errors.

const UNITS = ["", "\u00a0KB", "\u00a0MB"];

/** Creates a chip, as the upload's element. */
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
  const [, stem, ending = ""] = /^(.+?)(\.[^.]{1,8})?$/s.exec(name) ?? ["", name]; // long names keep their ending
  const shown = element.querySelector(".chip-name");
  if (shown.textContent !== stem + ending) shown.replaceChildren(make("span", { textContent: stem }), ending);
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

/** Formats a file size like the server: 512 bytes, 1.2 MB. */
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

// Files of the message being written: uploaded at once, shown as chips, sent with the text.

const page = document.getElementById("main");
const NAME = `parley:files:${page.dataset.viewerId}:${page.dataset.session ?? page.dataset.place}`;
const ASKED_AT = Date.now() - performance.now(); // when this page was requested
const list = document.getElementById("uploads");
const gone = new Set(); // ids of files that were sent or removed here
const waiting = []; // for the first file at home, which creates the session
let begun = ""; // that session
let isBeginning = false;
let uploads = []; // {name, size, file, text, state: "sending" | "ready" | "failed", done, problem, canRetry, meta, request, element}

const isUploading = () => uploads.some(({ state }) => state === "sending");
const hasFailed = () => uploads.some(({ state }) => state === "failed");

let isAwaited = false; // whether the message is sent when all uploads are done

/** Whether all files are uploaded. Shows a failed one; waits for the others and sends then. */
export function areThere() {
  if (hasFailed()) notice(words.uploadsFailed, { action: removal(), about: "uploads" });
  else if (isUploading()) waitForFiles(true);
  else return true;
  return false;
}

/** Returns the offer to remove the failed files together; null if there is only one, which has its own button. */
function removal() {
  const failed = uploads.filter(({ state }) => state === "failed");
  const run = () => {
    set(uploads.filter(({ state }) => state !== "failed"));
    field.focus();
  };
  return failed.length > 1 ? { label: fill(words.uploadsRemove, { count: failed.length }), run } : null;
}

/** Sends the message when the files are uploaded, unless the user types on. */
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

/** Returns the session that has the files; "" at home before the first file is uploaded. */
export const sessionOfFiles = () => page.dataset.session ?? uploads.find(({ meta }) => meta)?.meta.session ?? begun;

/** Forgets the session that the files created: it may have been deleted. */
export const forgetSession = () => (begun = "");

/** Removes the uploaded files from the composer and returns them, to be sent. */
export function take() {
  const ready = uploads.filter(({ state }) => state === "ready").map(({ meta }) => meta);
  for (const { id } of ready) gone.add(id);
  set(uploads.filter(({ state }) => state !== "ready"));
  return ready;
}

/** Returns uploaded files to the composer that were not sent. */
export function giveFilesBack(metas) {
  for (const { id } of metas) gone.delete(id);
  set([...uploads, ...metas.map(known)]);
}

/** Uploads files; `text` is the pasted text that a file was created from. */
export function add(files, text = "") {
  const fresh = [...files].map((file) => ({ name: file.name, size: file.size, file, text }));
  set([...uploads, ...fresh]);
  for (const upload of fresh) send(upload);
}

/** `unsent` are the files of messages that are not confirmed yet. */
export function connectUploads(unsent = []) {
  for (const { id } of unsent) gone.add(id);
  set(stored().map(known));
  if (page.dataset.session) follow(parsed(field.form.dataset.files) ?? [], ASKED_AT);
  addEventListener("storage", ({ key }) => key === NAME && follow(stored()));
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
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

/** Repeats uploads that failed with the connection. */
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

/** Creates the session as home's form says. The other files follow; if this fails, the next one creates it. */
function beginWith(upload) {
  isBeginning = true;
  const body = new FormData(field.form);
  body.delete("text"); // the user is still typing
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

/** Offers no retry for a refused file: it would be refused again. */
function answered(upload, { status, response }) {
  if (status === 404) forgetSession();
  if (status !== 201) return failed(upload, response?.message, status >= 500 || status === 429);
  begun = response.session ?? begun;
  const session = begun || undefined;
  change(upload, {
    state: "ready",
    meta: { ...response, at: Date.now(), session, pasted: upload.text !== "" && isWithin(upload.text) },
    name: response.name,
    size: response.size,
  });
  say(fill(words.fileAttached, { name: upload.name }));
  keep();
}

function failed(upload, problem = words.uploadFailed, canRetry = true) {
  change(upload, { state: "failed", problem, canRetry });
  upload.element?.scrollIntoView({ block: "nearest", inline: "nearest" }); // on phones the chips scroll in one line
  say(problem);
}

function change(upload, values) {
  Object.assign(upload, values);
  if (uploads.includes(upload)) updateChip(upload);
  if (values.state) settled();
}

function leave(upload) {
  gone.add(upload.meta?.id);
  const next = upload.element.nextElementSibling ?? upload.element.previousElementSibling;
  set(uploads.filter((other) => other !== upload));
  upload.request?.abort();
  const isUnused = !page.dataset.session && !uploads.length; // home's session, whose only file this was
  const values = isUnused ? { begun: "yes" } : {};
  if (isUnused) forgetSession();
  if (upload.meta) post(`/attachments/${upload.meta.id}/remove`, values, "").catch(() => {}); // the server deletes unsent files later
  (next?.querySelector("[data-action=upload-remove]") ?? field).focus();
}

/** Fetches the pasted text of a file: after a reload only the server has it. */
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

/** Shows the files that another tab, or the server, has. Those that were uploaded `since` then stay. */
function follow(theirs, since = Infinity) {
  const has = (meta) => uploads.some((upload) => upload.meta?.id === meta.id);
  const stay = uploads.filter(({ meta }) => !meta || meta.at >= since || theirs.some(({ id }) => id === meta.id));
  set([...stay, ...theirs.filter((meta) => !has(meta) && !gone.has(meta.id)).map(known)]);
}

/** Shows the files that the server has: other devices of the user upload, send and remove them, too. */
export async function refresh() {
  if (!page.dataset.session || isUploading()) return;
  const asked = Date.now();
  const answer = await valueAt(`/sessions/${page.dataset.session}/attachments/unsent`);
  if (answer && !isUploading()) follow(answer.files, asked);
}

/** Whether a file is attached that another device can send. */
export const hasFiles = () => uploads.some(({ meta }) => meta);

function keep() {
  const metas = uploads.filter(({ meta }) => meta).map(({ meta }) => meta);
  if (JSON.stringify(metas) === JSON.stringify(stored())) return;
  keepStored(NAME, JSON.stringify(metas));
}

function stored() {
  const metas = parsed(kept(NAME));
  return Array.isArray(metas) ? metas : [];
}

const LONG = 10_000; // characters; a longer pasted text becomes a file

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
    add(files); // copied spreadsheets and documents include an image
  else if (text.length > LONG) add([new File([text], words.pastedFile, { type: "text/plain" })], text);
  else return;
  event.preventDefault();
}

const isFiles = (event) => event.dataTransfer?.types.includes("Files");

/** Ignores elements of the page that are dragged. */
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
