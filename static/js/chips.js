// The chips of files in the composer: what each is, how far it is, what went wrong.
import { isWithin } from "./limit.js";
import { fill, words } from "./words.js";

const UNITS = ["", "\u00a0KB", "\u00a0MB"];

/** Draws a new chip; the upload knows it as its element. */
export function drawChip(upload) {
  upload.element = document.getElementById("chip").content.firstElementChild.cloneNode(true);
  updateChip(upload);
  return upload.element;
}

export function updateChip(upload) {
  const { element, state, name } = upload;
  element.dataset.state = state;
  element.dataset.kind = upload.meta?.kind ?? upload.file?.type.split("/")[0] ?? "";
  element.style.setProperty("--done", upload.done ?? 0);
  element.querySelector(".chip-name").textContent = name;
  element.querySelector(".chip-detail").textContent = detail(upload);
  element.querySelector("[data-action=upload-retry]").hidden = state !== "failed" || !upload.canRetry;
  element.querySelector("[data-action=upload-as-text]").hidden = !(upload.text ? isWithin(upload.text) : upload.meta?.pasted);
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
  const number = new Intl.NumberFormat(document.documentElement.lang, { ...form, minimumFractionDigits: places, maximumFractionDigits: places });
  return `${number.format(bytes / 1024 ** step)}${UNITS[step]}`;
}
