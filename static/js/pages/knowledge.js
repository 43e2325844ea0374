// The page of a workspace's files. It sends each chosen or dropped file in its own request and shows its state.
import { fetchText, formDataWithFile, goToSignIn, uploadFile } from "../net/http.js";
import * as signOut from "../sidebar/sign_out.js";
import { reportReady } from "../ui/commands.js";
import { createElement, parseHtml, patchChildren } from "../ui/dom.js";
import * as preferences from "../ui/preferences.js";
import * as renderedToasts from "../ui/rendered_toasts.js";
import { alignRows } from "../ui/rows.js";
import { localizeTimes } from "../ui/time.js";
import * as toasts from "../ui/toast.js";

const SIGNED_OUT = 401;
const CREATED = 201;
const form = document.getElementById("upload");
const list = document.getElementById("uploads");
let queue = Promise.resolve();
let pendingCount = 0;

for (const part of [preferences, signOut, toasts, renderedToasts]) part.connect();
localizeTimes(document, "medium");
form.querySelector("input[type=file]").addEventListener("change", ({ target }) => {
  uploadAll([...target.files]);
  target.value = "";
});
form.addEventListener("dragover", (event) => {
  event.preventDefault();
  form.toggleAttribute("data-over", true);
});
form.addEventListener("dragleave", () => form.removeAttribute("data-over"));
form.addEventListener("drop", (event) => {
  event.preventDefault();
  form.removeAttribute("data-over");
  uploadAll([...event.dataTransfer.files]);
});
document.addEventListener("toggle", focusName, true); // the event does not bubble
for (const target of document.querySelectorAll("details[open]")) focusName({ target }); // its name was refused
reportReady();

/** Moves the focus to the name of a file when its form opens, and selects the name. */
function focusName({ target }) {
  const name = target.open ? target.querySelector("[name=name]") : null;
  name?.focus();
  name?.select();
}

/** Sends files one after the other. The list of the workspace's files is updated when all are done. */
function uploadAll(files) {
  for (const file of files) {
    const state = createElement("span", { className: "help", textContent: form.dataset.reading });
    const line = createElement("li", {}, createElement("bdi", { textContent: file.name }), state);
    list.append(line);
    pendingCount += 1;
    queue = queue.then(() => uploadOne(file, state, line)).then(finishUpload);
  }
}

async function finishUpload() {
  pendingCount -= 1;
  const html = pendingCount ? null : await fetchText(location.pathname);
  if (html === null) return;
  const [shown, fresh] = [document, parseHtml(html)].map((root) => root.querySelector("#files"));
  const [list, wanted] = [shown, fresh].map((root) => root.querySelector(".knowledge"));
  if (list && wanted) alignRows(list, wanted, ({ id }) => id);
  patchChildren(shown, fresh);
  localizeTimes(document, "medium");
}

function uploadOne(file, state, line) {
  return new Promise((resolve) => {
    uploadFile(form.dataset.address, formDataWithFile(file, file.name), {
      progress: () => {},
      answered: ({ status, response }) => {
        if (status === SIGNED_OUT) goToSignIn();
        else if (status === CREATED) show(form.dataset.done, false);
        else show(response?.message ?? form.dataset.failed, true);
      },
      failed: () => show(form.dataset.failed, true),
    });

    function show(text, isRefused) {
      state.textContent = text;
      state.className = isRefused ? "errors" : "help";
      line.toggleAttribute("data-done", !isRefused);
      resolve();
    }
  });
}
