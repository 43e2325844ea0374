// Connects modules: those of a page at its start, others when they are first needed. Failed requests of htmx
// are reported here too, because nothing else on the page would change.
import { words } from "./i18n.js";
import { toast } from "./toast.js";

const connected = new Set();

/** Calls `connect` of modules, once each. */
export function connectAll(...modules) {
  for (const { connect } of modules) {
    if (!connect || connected.has(connect)) continue;
    connected.add(connect);
    connect();
  }
}

let styles = null; // a promise

/** Loads the style sheets of what opens at a button or a key, once. */
function loadStyles() {
  const links = [...document.getElementById("late-styles").content.cloneNode(true).children];
  const loaded = links.map(
    (link) => new Promise((resolve, reject) => Object.assign(link, { onload: resolve, onerror: reject })),
  );
  document.head.append(...links);
  return Promise.all(loaded);
}

/** Resolves to a module (`load` imports it), or to null after a notice that loading failed. */
export async function late(load) {
  try {
    styles ??= loadStyles();
    const [module] = await Promise.all([load(), styles]);
    connectAll(module);
    return module;
  } catch {
    styles = null; // the next attempt loads them again
    toast(words.notLoaded);
    return null;
  }
}

/** Resolves to a module that opens a field, or to null, and to what the user has typed while it was loaded. */
export async function lateWithTyped(load) {
  let typed = "";
  function keep(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Backspace") typed = typed.slice(0, -1);
    else if (event.key.length === 1) typed += event.key;
    else if (event.key !== "Enter") return; // which would send what is in the composer
    event.preventDefault();
    event.stopPropagation();
  }
  addEventListener("keydown", keep, true);
  const module = await late(load);
  removeEventListener("keydown", keep, true);
  return [module, typed];
}

const EXPLAINED = [401, 422]; // 401 leads to sign-in; 422 shows its own message

/** Whether the session of the page can no longer be used. */
const isOver = () => document.getElementById("main").hasAttribute("data-over");

function failed({ sourceElement, target, request, response, text }) {
  if (sourceElement.getAttribute("hx-trigger") === "refresh") return; // an automatic refresh, which will be repeated
  if (response?.status === 429 && text) toast(text);
  else if (isOver() && [403, 404].includes(response?.status)) toast(words.accessLost);
  else if (response?.status === 403) toast(words.tooOld);
  else toast(request.method.toUpperCase() === "GET" ? words.notLoaded : words.notDone);
  target.querySelector("[data-loading]")?.replaceWith(words.panelLost);
}

export function connect() {
  document.addEventListener(
    "htmx:response:error",
    ({ detail: { ctx } }) => EXPLAINED.includes(ctx.response.status) || failed(ctx),
  );
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => ctx && failed(ctx));
}
