// Files dropped anywhere on the session, or pasted into the composer, are attached; so is a very long pasted text.
import { field } from "./field.js";
import { page } from "./page.js";
import { add } from "./uploads.js";
import { words } from "./words.js";

const LONG = 10_000; // characters that are better read as a file

export function start() {
  field.addEventListener("paste", pasted);
  document.addEventListener("dragenter", entered);
  document.addEventListener("dragover", (event) => isFiles(event) && event.preventDefault());
  document.addEventListener("drop", dropped);
}

function pasted(event) {
  const { files } = event.clipboardData;
  const text = event.clipboardData.getData("text/plain");
  if (files.length && !text) add(files); // spreadsheets and documents come with a picture of themselves
  else if (text.length > LONG) add([new File([text], words.pastedFile, { type: "text/plain" })], text);
  else return;
  event.preventDefault();
}

const isFiles = (event) => event.dataTransfer?.types.includes("Files");

/** Something of this page that is dragged about is no file to attach. */
function entered(event) {
  if (!isFiles(event) || document.querySelector(".drop-here, dialog:modal")) return;
  const cover = document.getElementById("drop-here").content.firstElementChild.cloneNode(true);
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
