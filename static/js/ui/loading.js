// Connects the modules of a page, and imports others when they are first needed. Reports htmx requests that failed,
// because the page would not show it otherwise.
import { createElement } from "./dom.js";
import { words } from "./i18n.js";
import { reload } from "./navigation.js";
import { showToast } from "./toast.js";

const connected = new Set();

/** Calls `connect` of each module, unless it has been called before. */
export function connectAll(...modules) {
  for (const { connect } of modules) {
    if (!connect || connected.has(connect)) continue;
    connected.add(connect);
    connect();
  }
}

let styles = null; // a promise

/** Loads the style sheets of dialogs and panels that are opened later. */
function loadStyles() {
  const links = [...document.getElementById("late-styles").content.cloneNode(true).children];
  const loaded = links.map(
    (link) => new Promise((resolve, reject) => Object.assign(link, { onload: resolve, onerror: reject })),
  );
  document.head.append(...links);
  return Promise.all(loaded);
}

let closeProblem = () => {};

/** Imports a module with `load` and connects it. Resolves to the module, or to null after a toast if that failed. */
export async function lazyImport(load) {
  try {
    styles ??= loadStyles();
    const [module] = await Promise.all([load(), styles]);
    connectAll(module);
    return module;
  } catch {
    styles = null; // the next attempt loads them again
    // Browsers other than Chromium do not request a module again that they could not load.
    closeProblem();
    closeProblem = showToast(words.notLoaded, { action: { label: words.reload, run: reload } });
    return null;
  }
}

let isRecording = false; // whether `lazyImportWithTyped` is waiting

/**
 * Imports a module like `lazyImport`. Resolves to [module or null, the text that the user has typed while it loaded].
 * Resolves to [null] while another such module is loading: the user may press a key or a button twice.
 */
export async function lazyImportWithTyped(load) {
  if (isRecording) return [null];
  isRecording = true;
  let typed = "";
  function recordKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Backspace") typed = typed.slice(0, -1);
    else if (event.key.length === 1) typed += event.key;
    else if (event.key !== "Enter") return; // Enter is swallowed, because it would send the composer's text
    event.preventDefault();
    event.stopPropagation();
  }
  addEventListener("keydown", recordKey, true);
  const module = await lazyImport(load);
  removeEventListener("keydown", recordKey, true);
  isRecording = false;
  return [module, typed];
}

const EXPLAINED_STATUSES = [401, 422]; // 401 leads to sign-in; 422 shows its own message

/** Returns a line that replaces content that could not be loaded, with a button that tries again. */
export function createLoadError(retry) {
  const button = createElement("button", { type: "button", className: "button small", onclick: retry }, words.tryAgain);
  return createElement("p", { className: "lost" }, createElement("span", {}, words.contentLost), button);
}

/** Returns whether the user has lost access to the page's session. */
const isAccessLost = () => document.getElementById("main").hasAttribute("data-closed");

function reportFailure({ sourceElement, target, request, response, text }) {
  if (sourceElement.getAttribute("hx-trigger") === "refresh") return; // an automatic refresh, which will be repeated
  if (response?.status === 429 && text) showToast(text);
  else if (isAccessLost() && [403, 404].includes(response?.status)) showToast(words.accessLost);
  else if (response?.status === 403) showToast(words.tooOld);
  else if (request.method.toUpperCase() !== "GET") showToast(words.notDone);
  else if (!target.querySelector("[data-loading]")) showToast(words.notLoaded);
  target
    .querySelector("[data-loading]")
    ?.replaceWith(createLoadError(() => reopenDialog(target.closest("dialog"), sourceElement)));
}

/** Opens a dialog again by its button, because closing it ends the code that handles it. */
function reopenDialog(dialog, button) {
  dialog.addEventListener("close", () => button.click(), { once: true });
  dialog.close();
}

export function connect() {
  document.addEventListener(
    "htmx:response:error",
    ({ detail: { ctx } }) => EXPLAINED_STATUSES.includes(ctx.response.status) || reportFailure(ctx),
  );
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => ctx && reportFailure(ctx));
}
