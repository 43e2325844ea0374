// The page of a workspace's files: each chosen or dropped file is sent by itself, and its state is shown.
import { formWith, sendFile, signIn, textAt } from "../net/http.js";
import * as signOut from "../sidebar/sign_out.js";
import { ready } from "../ui/commands.js";
import { make, parse, patchChildren } from "../ui/dom.js";
import * as preferences from "../ui/preferences.js";
import { localise } from "../ui/time.js";
import * as toasts from "../ui/toast.js";

const SIGNED_OUT = 401;
const CREATED = 201;
const form = document.getElementById("upload");
const list = document.getElementById("uploads");
let queue = Promise.resolve();
let open = 0;

for (const part of [preferences, signOut, toasts]) part.connect();
localise(document, "medium");
form.querySelector("input[type=file]").addEventListener("change", ({ target }) => {
  addAll([...target.files]);
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
  addAll([...event.dataTransfer.files]);
});
ready();

/** Sends files one after the other. The list of the workspace's files follows when all are read. */
function addAll(files) {
  for (const file of files) {
    const state = make("span", { className: "help", textContent: form.dataset.reading });
    const line = make("li", {}, make("bdi", { textContent: file.name }), state);
    list.append(line);
    open += 1;
    queue = queue.then(() => send(file, state, line)).then(settle);
  }
}

async function settle() {
  open -= 1;
  const html = open ? null : await textAt(location.pathname);
  if (html === null) return;
  patchChildren(document.getElementById("files"), parse(html).querySelector("#files"));
  localise(document, "medium");
}

function send(file, state, line) {
  return new Promise((resolve) => {
    sendFile(form.dataset.address, formWith(file, file.name), {
      progress: () => {},
      answered: ({ status, response }) => {
        if (status === SIGNED_OUT) signIn();
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
